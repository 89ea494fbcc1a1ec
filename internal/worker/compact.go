package worker

import (
	"context"
	"encoding/json"
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
	outcomeRedone    = "written anew"
	outcomeNotRedone = "not written anew"
)

// handle does a job. The job only names a session; what is to be done is read
// from Postgres, so a job that comes twice, late or for nothing is harmless.
func (w *Worker) handle(ctx context.Context, j bus.Job, _ bus.Delivery) error {
	sid, err := uuid.Parse(j.SID)
	if err != nil {
		return fmt.Errorf("%w: session id: %w", bus.ErrPermanent, err)
	}
	debt, owes, err := w.cfg.Debts.DebtOf(ctx, j.Tenant, sid)
	if err != nil {
		return err
	}
	if !owes {
		if j.Attempt >= prepareAttempt && w.cfg.Prepare != nil {
			return w.prepareSession(ctx, j.Tenant, sid)
		}
		return nil
	}
	s, err := w.cfg.Debts.SessionBySID(ctx, j.Tenant, sid)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return w.cfg.Debts.ForgiveDebt(ctx, j.Tenant, sid)
	}
	if err != nil {
		return err
	}
	started := time.Now()
	res, err := w.cfg.Compactor.Owed(ctx, s, debt)
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
		if ctx.Err() != nil {
			return err
		}
		if perr := w.cfg.Debts.PostponeDebt(ctx, s.Tenant, s.SID, w.pause(debt.Failures+1, err), err.Error()); perr != nil {
			return errors.Join(err, perr)
		}
		w.cfg.Logger.Warn("compaction failed; it will be tried again", "sid", s.SID, "failures", debt.Failures+1, "error", err)
		// The debt says when: a job sent again at once would ask the same models.
		return nil
	case !res.Compacted:
		w.record(ctx, s, started, outcomeNothing, errors.New(res.Reason))
		return w.cfg.Debts.SettleDebt(ctx, debt)
	}
	w.record(ctx, s, started, outcomeCompacted, hookError(res))
	w.cfg.Logger.Info("compacted", "sid", s.SID, "epoch", res.Epoch,
		"tokensBefore", res.Result.TokensBefore, "tokensAfter", res.Result.TokensAfter, "took", time.Since(started))
	return nil
}

// pause is how long a failed compaction is left alone: longer each time, and at
// least until somebody may be asked again.
func (w *Worker) pause(failures int, cause error) time.Duration {
	delay := w.cfg.Retry.Delay(failures)
	var gated interface{ RetryAt() time.Time }
	if errors.As(cause, &gated) {
		if at := gated.RetryAt(); !at.IsZero() {
			delay = min(max(delay, time.Until(at)), w.cfg.Retry.Max)
		}
	}
	return delay
}

// hookError is what became of the hook before a compaction, nil where it did well.
func hookError(res contextengine.CompactResult) error {
	var details struct {
		HookError string `json:"hookError"`
	}
	if res.Result == nil {
		return nil
	}
	// An engine that is not built in may say anything there.
	_ = json.Unmarshal(res.Result.Details, &details)
	if details.HookError == "" {
		return nil
	}
	return errors.New("hook before: " + details.HookError)
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
