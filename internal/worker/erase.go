package worker

import (
	"context"
	"errors"
	"time"

	"github.com/engined/engined/internal/store"
)

// Eraser is the part of the store that ends sessions.
type Eraser interface {
	SweepErased(ctx context.Context, limit int) (int, error)
	ExpiredAfter(ctx context.Context, r store.Retention, at store.RetentionCursor, limit int) ([]store.Expired, store.RetentionCursor, bool, error)
	EraseExpired(ctx context.Context, r store.Retention, x store.Expired) (store.Erasure, bool, error)
	Oversized(ctx context.Context, k store.Keeping, after string, limit int) (over []store.Oversize, next string, more bool, err error)
	OldestIdle(ctx context.Context, k store.Keeping, tenant string, after store.Idle, limit int) ([]store.Idle, error)
	EraseOversize(ctx context.Context, k store.Keeping, o store.Oversize, x store.Idle) (store.Erasure, bool, error)
}

const (
	// graveLimit is how many erased sessions one sweep looks at, retentionPage
	// how many living ones.
	graveLimit    = 50
	retentionPage = 500
)

// eraseLoops finish erasures that were broken off, and erase what the policy
// has expired. None without an Eraser.
func eraseLoops(cfg Config) []*loop {
	if cfg.Eraser == nil {
		return nil
	}
	loops := []*loop{{
		name: "sweep of erased sessions", interval: cfg.EraseInterval, log: cfg.Logger,
		step: func(ctx context.Context) (bool, error) {
			n, err := cfg.Eraser.SweepErased(ctx, graveLimit)
			return n == graveLimit, err
		},
	}}
	if cfg.Retention.Any() {
		r := &retention{cfg: cfg}
		loops = append(loops, &loop{name: "retention", interval: cfg.RetentionInterval, log: cfg.Logger, step: r.once})
	}
	// A tenant may have a size of its own where the settings have none.
	k := &keeping{cfg: cfg}
	return append(loops, &loop{name: "retention by size", interval: cfg.RetentionInterval, log: cfg.Logger, step: k.once})
}

// retention walks all sessions, a page a step. Several may walk at once: who
// comes second finds the session gone.
type retention struct {
	cfg Config
	at  store.RetentionCursor
}

func (r *retention) once(ctx context.Context) (more bool, err error) {
	found, next, more, err := r.cfg.Eraser.ExpiredAfter(ctx, r.cfg.Retention, r.at, retentionPage)
	if err != nil {
		return false, err
	}
	for _, x := range found {
		e, ok, err := r.cfg.Eraser.EraseExpired(ctx, r.cfg.Retention, x)
		if r.cfg.passOver(ctx, x, err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if ok {
			// No key: a log is read by more people than the session is.
			r.cfg.Logger.Info("erased by retention", "tenant", x.Tenant, "sid", x.SID, "events", e.Counts["events"],
				"created", x.CreatedAt.UTC().Format(time.RFC3339), "updated", x.UpdatedAt.UTC().Format(time.RFC3339))
		}
	}
	if r.at = next; !more {
		r.at = store.RetentionCursor{}
	}
	return more, nil
}

// passOver tells that a session could not be erased for a reason of its own: the
// walk goes on without it and comes to it again with the next one.
func (c Config) passOver(ctx context.Context, x store.Expired, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return false
	}
	c.Logger.Error("retention could not erase a session", "tenant", x.Tenant, "sid", x.SID, "error", err)
	return true
}
