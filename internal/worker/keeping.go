package worker

import (
	"context"
	"time"

	"github.com/engined/engined/internal/store"
)

const (
	// keepingTenants is how many tenants one step looks at, keepingBatch how many
	// sessions of one it reads at a time, keepingStep how many it erases before the
	// next tenant has its turn.
	keepingTenants = 50
	keepingBatch   = 200
	keepingStep    = 200
)

// keeping walks the tenants and erases the longest idle sessions of those that
// have more than is kept.
type keeping struct {
	cfg   Config
	after string
	// unfinished tells that a tenant of this walk had more than one step takes.
	unfinished bool
}

func (k *keeping) once(ctx context.Context) (more bool, err error) {
	over, next, more, err := k.cfg.Eraser.Oversized(ctx, k.cfg.Keeping, k.after, keepingTenants)
	if err != nil {
		return false, err
	}
	for _, o := range over {
		cut, err := k.shrink(ctx, o)
		if err != nil {
			return false, err
		}
		k.unfinished = k.unfinished || cut
	}
	if k.after = next; more {
		return true, nil
	}
	more = k.unfinished
	k.after, k.unfinished = "", false
	return more, nil
}

// shrink erases until the tenant fits; cut tells that it stopped before.
func (k *keeping) shrink(ctx context.Context, o store.Oversize) (cut bool, err error) {
	gone, at := 0, store.Idle{}
	for {
		idle, err := k.cfg.Eraser.OldestIdle(ctx, k.cfg.Keeping, o.Tenant, at, keepingBatch)
		if err != nil {
			return false, err
		}
		for _, x := range idle {
			at = x
			if o.Bytes <= o.Keep {
				return false, nil
			}
			if gone == keepingStep {
				return true, nil
			}
			e, ok, err := k.cfg.Eraser.EraseOversize(ctx, k.cfg.Keeping, o, x)
			if k.cfg.passOver(ctx, x.Expired, err) {
				continue
			}
			if err != nil {
				return false, err
			}
			// One that somebody else erased has made room as well; one that was written to
			// meanwhile is missed until the next walk.
			o.Bytes -= x.Bytes
			if ok {
				gone++
				k.cfg.Logger.Info("erased by retention", "tenant", x.Tenant, "sid", x.SID, "events", e.Counts["events"], "bytes", x.Bytes,
					"created", x.CreatedAt.UTC().Format(time.RFC3339), "updated", x.UpdatedAt.UTC().Format(time.RFC3339))
			}
		}
		if len(idle) < keepingBatch {
			if o.Bytes > o.Keep {
				k.cfg.Logger.Warn("a tenant holds more than is kept, and no session is idle for long enough",
					"tenant", o.Tenant, "bytes", o.Bytes, "keep", o.Keep)
			}
			return false, nil
		}
	}
}
