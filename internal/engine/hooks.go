package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
)

// CompactionHooks hear of compactions, so that a memory system can write notes
// before details leave the window. Whatever a hook does, the compaction goes on.
type CompactionHooks interface {
	// Before is waited for; it bounds itself. What it has written to the session
	// when it returns is part of the compaction's plan.
	Before(ctx context.Context, e CompactionEvent) error
	// After does not block.
	After(e CompactionEvent)
}

// CompactionEvent is a compaction in ids and numbers.
type CompactionEvent struct {
	// ID is the same before and after.
	ID                 string
	Tenant, SessionKey string
	SID                uuid.UUID
	// Head and Epoch are the session's: before it the planned ones, after it those
	// that the compaction left.
	Head, Epoch int64
	Forced      bool
	// TokensBefore is the window as it was; TokensAfter what it may take at most,
	// after the compaction what it takes.
	TokensBefore, TokensAfter int
	// Compacted, Reason and Err tell how it ended.
	Compacted bool
	Reason    string
	Err       error
}

// toldHooks is a compaction that hooks were told of.
type toldHooks struct {
	hooks CompactionHooks
	event CompactionEvent
	err   error
}

// before waits for the hooks. Their failure is kept, logged and nothing else.
func (c *Compactor) before(ctx context.Context, j *job) *toldHooks {
	v := j.view
	t := &toldHooks{hooks: c.cfg.Hooks, event: CompactionEvent{
		ID: uuid.NewString(), Tenant: v.Tenant, SessionKey: v.Key, SID: v.SID, Head: v.Head, Epoch: v.Epoch, Forced: j.forced,
		TokensBefore: j.plan.TokensBefore, TokensAfter: j.plan.TokensAfterMax,
	}}
	if t.err = t.hooks.Before(ctx, t.event); t.err != nil {
		c.cfg.Logger.Warn("the hook before a compaction failed; the compaction goes on", "sid", v.SID, "hook", t.event.ID, "error", t.err)
	}
	return t
}

// after tells how it ended.
func (t *toldHooks) after(res contextengine.CompactResult, err error) {
	if t == nil {
		return
	}
	e := t.event
	e.Compacted, e.Reason, e.Err = res.Compacted, res.Reason, err
	e.TokensAfter = e.TokensBefore
	if res.Compacted && res.Result != nil {
		e.TokensBefore, e.TokensAfter, e.Epoch = res.Result.TokensBefore, res.Result.TokensAfter, res.Epoch
	}
	t.hooks.After(e)
}

func (t *toldHooks) failure() string {
	if t == nil || t.err == nil {
		return ""
	}
	return reasonOf(t.err)
}
