package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/store"
)

// Prepare makes drafts of the compaction that a session over the soft threshold
// will owe, and answers how many are at hand. It changes nothing of the session.
func (c *Compactor) Prepare(ctx context.Context, s store.Session) (int, error) {
	if !c.prepares {
		return 0, nil
	}
	done, err := c.flight.enter(ctx, s.SID)
	if err != nil {
		return 0, err
	}
	defer done()
	v, err := c.cfg.Log.View(ctx, s.Tenant, s.Key, uuid.Nil, 0, 0)
	if err != nil {
		return 0, err
	}
	if v.SID != s.SID {
		return 0, contextengine.ErrUnknownSession
	}
	j := &job{view: v}
	if j.entries, err = c.uncovered(ctx, v); err != nil {
		return 0, err
	}
	if err := c.count(ctx, j); err != nil {
		return 0, err
	}
	in := c.planInput(j, contextengine.CompactParams{Session: contextengine.Session{Tenant: s.Tenant, SessionKey: s.Key}})
	in = in.Early()
	plan, stop := c.plan(in)
	if stop != "" {
		return 0, nil
	}
	return compact.Prepare(ctx, c.runInput(v, plan, "", false))
}

// Prepare makes drafts of the coming compaction; see Compactor.Prepare.
func (l *Lossless) Prepare(ctx context.Context, s store.Session) (int, error) {
	return l.Compactor.Prepare(ctx, s)
}

// Prepare makes drafts where the slot's engine knows how, isolated as every call
// is.
func (g *Guard) Prepare(ctx context.Context, s store.Session) (int, error) {
	return call(ctx, g, guarded[int]{
		op: OpCompact, rethrow: true,
		bind: func(in *instance) bound[int] {
			return func(ctx context.Context) (int, error) {
				e, ok := in.engine.(interface {
					Prepare(ctx context.Context, s store.Session) (int, error)
				})
				if !ok {
					return 0, nil
				}
				return e.Prepare(ctx, s)
			}
		},
	})
}
