package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/store"
)

// The outcomes of an attempt, as they are recorded.
const (
	outcomeCompacted = "compacted"
	outcomeNothing   = "nothing to gain"
	outcomeLost      = "lost the race"
	outcomeFailed    = "failed"
	outcomeDead      = "dead letter"
)

// handle does a job. The job only names a session; what is to be done is read
// from Postgres, so a job that comes twice, late or for nothing is harmless.
func (w *Worker) handle(ctx context.Context, j bus.Job, _ bus.Delivery) error {
	sid, err := uuid.Parse(j.SID)
	if err != nil {
		return fmt.Errorf("%w: session id: %w", bus.ErrPermanent, err)
	}
	debt, owes, err := w.cfg.Debts.DebtOf(ctx, j.Tenant, sid)
	if err != nil || !owes {
		return err
	}
	s, err := w.cfg.Debts.SessionBySID(ctx, j.Tenant, sid)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return w.cfg.Debts.ForgiveDebt(ctx, j.Tenant, sid)
	}
	if err != nil {
		return err
	}
	started := time.Now()
	res, err := w.cfg.Compactor.Owed(ctx, s, int(debt.Budget))
	var conflict *contextengine.EpochConflictError
	switch {
	case errors.As(err, &conflict):
		// Somebody else stepped the epoch; a debt that is still there comes
		// back with the sweep.
		w.record(ctx, s, started, outcomeLost, nil)
		return nil
	case errors.Is(err, contextengine.ErrUnknownSession):
		return nil // erased meanwhile, and its debt with it
	case err != nil:
		w.record(ctx, s, started, outcomeFailed, err)
		if ctx.Err() == nil {
			delay := bus.Backoff{Min: 2 * time.Second, Max: 10 * time.Minute}.Delay(debt.Attempts + 1)
			if perr := w.cfg.Debts.PostponeDebt(ctx, s.Tenant, s.SID, delay, err.Error()); perr != nil {
				w.cfg.Logger.Warn("debt was not postponed", "error", perr)
			}
		}
		return err
	case !res.Compacted:
		w.record(ctx, s, started, outcomeNothing, errors.New(res.Reason))
		return w.cfg.Debts.SettleDebt(ctx, debt)
	}
	w.record(ctx, s, started, outcomeCompacted, nil)
	w.cfg.Logger.Info("compacted", "sid", s.SID, "epoch", res.Epoch,
		"tokensBefore", res.Result.TokensBefore, "tokensAfter", res.Result.TokensAfter, "took", time.Since(started))
	return nil
}

// record notes an attempt, even when the job's own context has ended.
func (w *Worker) record(ctx context.Context, s store.Session, started time.Time, outcome string, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	a := store.Attempt{
		Tenant: s.Tenant, SID: s.SID, Epoch: s.Epoch, Worker: w.cfg.Name, Outcome: outcome, StartedAt: started,
	}
	if cause != nil {
		a.Err = cause.Error()
	}
	if err := w.cfg.Debts.RecordAttempt(ctx, a); err != nil {
		w.cfg.Logger.Warn("attempt was not recorded", "error", err)
	}
}

// dead records a job that the bus gives up on. The debt stays: the sweep sends
// it again when its time has come.
func (w *Worker) dead(ctx context.Context, j bus.Job, _ bus.Delivery, cause error) error {
	sid, err := uuid.Parse(j.SID)
	if err != nil {
		w.cfg.Logger.Warn("dead letter without a session", "sid", j.SID, "cause", cause)
		return nil //nolint:nilerr // nothing to record it under
	}
	w.cfg.Logger.Warn("compaction job is dead", "sid", sid, "cause", cause)
	return w.cfg.Debts.RecordAttempt(ctx, store.Attempt{
		Tenant: j.Tenant, SID: sid, Epoch: j.Epoch, Worker: w.cfg.Name, Outcome: outcomeDead,
		Err: cause.Error(), StartedAt: time.Now(),
	})
}

// sweepLimit is how many debts one sweep publishes.
const sweepLimit = 256

// sweepOnce publishes due debts. The attempt in the job's id keeps the bus
// from taking a deliberate re-send for a repetition.
func (w *Worker) sweepOnce(ctx context.Context) (more bool, err error) {
	if ok, detail := w.cfg.Bus.Healthy(); !ok {
		w.cfg.Logger.Debug("sweep waits for NATS", "detail", detail)
		return false, nil
	}
	due, err := w.cfg.Debts.DueDebt(ctx, sweepLimit, w.cfg.SweepLease)
	if err != nil {
		return false, err
	}
	for _, d := range due {
		err := w.cfg.Bus.PublishJob(ctx, bus.Job{Tenant: d.Tenant, SID: d.SID.String(), Epoch: d.Epoch, Attempt: d.Attempts})
		if err != nil {
			return false, err
		}
	}
	return len(due) == sweepLimit, nil
}
