package engine

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// Windows are counted as the model of their call counts, the log's own sum as the
// model does with which the epoch began. A debt goes by the former: else a session
// whose models take turns leaves messages out long before it owes anything.

// scale is what a session's epoch knows of models. It changes with the epoch only.
type scale struct {
	sid   uuid.UUID
	epoch int64
	// state holds the factors and nothing else.
	state events.State
	// budget is the last that a turn named.
	budget int64
}

// heard forgets what an append shows to be of an epoch or a life that is over.
func (w *writer) heard(s contextengine.Session, a store.Appended) {
	key := cacheKey{s.Tenant, s.SessionKey}
	if v, ok := w.scales.get(key); ok && (v.epoch != a.Epoch || v.sid != a.SID) {
		w.scales.drop(key)
	}
}

// scaleOf is the scale of the item's session, and false where there is no session
// yet: then it is that of a first epoch.
func (w *writer) scaleOf(ctx context.Context, it *store.Item) (scale, bool, error) {
	key := cacheKey{it.Tenant, it.SessionKey}
	v, ok := w.scales.get(key)
	if !ok {
		view, err := w.cfg.Log.View(ctx, it.Tenant, it.SessionKey, uuid.Nil, 0, 0)
		if errors.Is(err, contextengine.ErrUnknownSession) {
			return scale{epoch: 1, state: events.FirstState(), budget: it.Budget}, false, nil
		}
		if err != nil {
			return scale{}, false, err
		}
		v = scale{sid: view.SID, epoch: view.Epoch, budget: view.TokenBudget}
		v.state.FactorMilli, v.state.Factors = view.State.FactorMilli, view.State.Factors
	}
	if it.Budget > 0 {
		v.budget = it.Budget
	}
	w.scales.put(key, v)
	return v, true, nil
}

// scaled is by how much the item's session counts more for the item's model than
// by its own factor, in thousandths; 0 where it counts the same.
func (w *writer) scaled(ctx context.Context, it *store.Item, prompt int64) (int, error) {
	v, there, err := w.scaleOf(ctx, it)
	if err != nil {
		return 0, err
	}
	own, f := max(v.state.FactorMilli, 1), factor(&v.state, it.Model)
	if there && v.epoch == 1 {
		gauged, err := w.gauged(ctx, it, v, prompt)
		if err != nil {
			return 0, err
		}
		if gauged > 0 {
			f = gauged
		}
	}
	if f == own {
		return 0, nil
	}
	return max(f*1000/own, 1), nil
}
