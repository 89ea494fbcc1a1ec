package worker

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// Preparer makes drafts of a compaction that a session will owe soon, so that
// its models are asked before anybody waits for them.
type Preparer interface {
	Prepare(ctx context.Context, s store.Session) (made int, err error)
}

// prepareAttempt is the attempt from which on a job is a preparation: no debt is
// sent so often. What follows counts the growth of the session, so that each step
// of it is one job and a repetition is none.
const prepareAttempt = 1 << 30

// prepareStep is the growth, in tokens, after which another preparation is worth
// it: about the source of one summary.
const prepareStep = 7000

// prepare publishes jobs for the sessions of a page that come near their
// threshold. Losing one costs a later compaction some time, nothing else.
func (r *relay) prepare(ctx context.Context, page []store.Notice) error {
	if r.cfg.Prepare == nil {
		return nil
	}
	var tenants []string
	var sids []uuid.UUID
	for _, n := range page {
		if n.Type == events.TurnCompleted {
			tenants, sids = append(tenants, n.Tenant), append(sids, n.SID)
		}
	}
	if len(sids) == 0 {
		return nil
	}
	soft, err := r.cfg.Debts.WorthPreparing(ctx, tenants, sids, r.cfg.SoftMilli)
	if err != nil {
		return err
	}
	for _, s := range soft {
		err := r.cfg.Bus.PublishJob(ctx, bus.Job{
			Tenant: s.Tenant, SID: s.SID.String(), Epoch: s.Epoch, Attempt: prepareAttempt + int(s.Tokens/prepareStep),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareSession makes drafts. It never fails a job: the compaction itself is
// tried again when it is owed.
func (w *Worker) prepareSession(ctx context.Context, tenant string, sid uuid.UUID) error {
	s, err := w.cfg.Debts.SessionBySID(ctx, tenant, sid)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return nil
	}
	if err != nil {
		return err
	}
	made, err := w.cfg.Prepare.Prepare(ctx, s)
	if err != nil && ctx.Err() == nil {
		w.cfg.Logger.Info("preparation ended early", "sid", sid, "drafts", made, "error", err)
		return nil
	}
	w.cfg.Logger.Debug("prepared", "sid", sid, "drafts", made)
	return err
}
