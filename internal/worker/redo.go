package worker

import (
	"context"
	"errors"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

const (
	// redoLimit is how many sessions one look takes; one after the other, since
	// nobody waits for them.
	redoLimit = 4
	// redoLease is how long they are left to one worker.
	redoLease = 10 * time.Minute
)

// redoOnce has models write anew what a rule wrote in their place.
func (w *Worker) redoOnce(ctx context.Context) (more bool, err error) {
	due, err := w.cfg.Debts.DueRedo(ctx, redoLimit, redoLease)
	if err != nil {
		return false, err
	}
	for _, d := range due {
		if err := w.redoSession(ctx, d); err != nil {
			return false, err
		}
	}
	return len(due) == redoLimit, nil
}

func (w *Worker) redoSession(ctx context.Context, d store.Redo) error {
	s, err := w.cfg.Debts.SessionBySID(ctx, d.Tenant, d.SID)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return w.cfg.Debts.PayRedo(ctx, d.Tenant, d.SID)
	}
	if err != nil {
		return err
	}
	started := time.Now()
	redone, err := w.cfg.Compactor.Redo(ctx, s)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		w.record(ctx, s, started, outcomeNotRedone, err)
		return w.cfg.Debts.PostponeRedo(ctx, d.Tenant, d.SID, w.redoPause(d.Attempts, err), err.Error())
	case !redone:
		return w.cfg.Debts.PayRedo(ctx, d.Tenant, d.SID)
	}
	w.record(ctx, s, started, outcomeRedone, nil)
	w.cfg.Logger.Info("summaries written anew", "sid", s.SID, "took", time.Since(started))
	return nil
}

// redoPause is at least until somebody may be asked again. A session that moved
// on meanwhile is tried again soon.
func (w *Worker) redoPause(attempts int, cause error) time.Duration {
	if _, ok := errors.AsType[*contextengine.EpochConflictError](cause); ok {
		return w.cfg.RedoRetry.Min
	}
	delay := w.cfg.RedoRetry.Delay(attempts)
	var gated interface{ RetryAt() time.Time }
	if errors.As(cause, &gated) && !gated.RetryAt().IsZero() {
		delay = max(delay, min(time.Until(gated.RetryAt()), w.cfg.RedoRetry.Max))
	}
	return delay
}
