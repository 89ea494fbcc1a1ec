package worker

import (
	"context"
	"errors"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

const (
	relayName = "relay-v1"
	relayPage = 500
)

// relay publishes turn and epoch events from the log in its gap-safe order.
// Nodes publish the same at once after their commit; the relay repeats what
// they could not, and the bus drops what it has seen. Several relays may run:
// their checkpoint never goes back, and repetitions are harmless.
type relay struct {
	cfg Config
	at  store.Cursor
}

func (r *relay) once(ctx context.Context) (more bool, err error) {
	if ok, _ := r.cfg.Bus.Healthy(); !ok {
		return false, nil
	}
	saved, err := r.cfg.Debts.Checkpoint(ctx, relayName)
	if err != nil {
		return false, err
	}
	if after(saved, r.at) {
		r.at = saved
	}
	page, err := r.cfg.Debts.Notices(ctx, r.at, relayPage)
	if errors.Is(err, store.ErrFeedEra) {
		r.at = store.Cursor{} // a new era has its own order
		return true, nil
	}
	if err != nil || len(page) == 0 {
		return false, err
	}
	for _, n := range page {
		t := bus.TurnCompleted
		if n.Type != events.TurnCompleted {
			t = bus.EpochRotated
		}
		err := r.cfg.Bus.PublishNotice(ctx, bus.Notice{
			Type: t, Tenant: n.Tenant, SID: n.SID.String(), Seq: n.Seq, Epoch: n.Epoch,
		})
		if err != nil {
			return false, err
		}
		r.at = n.Cursor
	}
	if err := r.prepare(ctx, page); err != nil {
		return false, err
	}
	return len(page) == relayPage, r.cfg.Debts.SaveCheckpoint(ctx, relayName, r.at)
}

func after(a, b store.Cursor) bool {
	if a.Era != b.Era {
		return a.Era > b.Era
	}
	return a.XID > b.XID || a.XID == b.XID && a.Position > b.Position
}
