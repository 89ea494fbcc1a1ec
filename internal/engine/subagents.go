package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// maxTTL bounds how long a sub-agent may take to begin.
const maxTTL = 366 * 24 * time.Hour

// PrepareSubagentSpawn opens a child session: an empty one, or a fork of the
// parent as it is now without the parent's open call. The same preparation again,
// before the child has begun, answers as the first time.
func (l *Lossless) PrepareSubagentSpawn(
	ctx context.Context, p contextengine.PrepareSubagentSpawnParams,
) (*contextengine.SubagentPreparation, error) {
	ttl, err := l.checkPrepare(p)
	if err != nil {
		return nil, err
	}
	c := &store.NewChild{
		Tenant: p.Tenant, Key: p.ChildSessionKey, HostSession: p.ChildSessionID, TTL: ttl, Kind: store.KindIsolated,
		PreparationID: uuid.Must(uuid.NewV7()).String(),
	}
	if p.ContextMode == contextengine.ContextFork {
		c.Kind = store.KindForkedSubagent
	}
	for try := 1; ; try++ {
		if err := l.planChild(ctx, p, c); err != nil {
			return nil, err
		}
		_, err := l.cfg.Log.OpenChild(ctx, c)
		switch {
		case errors.Is(err, store.ErrLineChanged) && try < forkTries:
			continue
		case errors.Is(err, contextengine.ErrSessionExists):
			return l.preparedBefore(ctx, c)
		case err != nil:
			return nil, err
		}
		return l.preparation(c.Tenant, c.ParentKey, c.Key, c.PreparationID), nil
	}
}

func (l *Lossless) checkPrepare(p contextengine.PrepareSubagentSpawnParams) (time.Duration, error) {
	if err := checkSession(p.Session); err != nil {
		return 0, err
	}
	if err := checkChildKey("childSessionKey", p.ChildSessionKey); err != nil {
		return 0, err
	}
	if err := checkSession(contextengine.Session{SessionKey: "-", SessionID: p.ChildSessionID}); err != nil {
		return 0, &contextengine.InvalidError{Field: "childSessionId", Reason: "valid UTF-8 without NUL"}
	}
	switch p.ContextMode {
	case "", contextengine.ContextIsolated, contextengine.ContextFork:
	default:
		return 0, &contextengine.InvalidError{Field: "contextMode", Reason: `"isolated" or "fork"`}
	}
	if p.TTLMs < 0 || p.TTLMs > maxTTL.Milliseconds() {
		return 0, &contextengine.InvalidError{Field: "ttlMs", Reason: fmt.Sprintf("0 to %d milliseconds", maxTTL.Milliseconds()), Limit: maxTTL.Milliseconds()}
	}
	if p.TTLMs == 0 {
		return l.cfg.SubagentTTL, nil
	}
	return time.Duration(p.TTLMs) * time.Millisecond, nil
}

// planChild reads what the child begins with.
func (l *Lossless) planChild(ctx context.Context, p contextengine.PrepareSubagentSpawnParams, c *store.NewChild) error {
	v, err := l.cfg.Log.View(ctx, p.Tenant, p.SessionKey, uuid.Nil, 0, 0)
	if err != nil {
		return err
	}
	c.Parent, c.ParentKey, c.ParentSeq, c.Events = v.SID, v.Key, v.Head, nil
	mode := contextengine.ContextIsolated
	if c.Kind == store.KindForkedSubagent {
		mode = contextengine.ContextFork
		if c.Start, err = l.startAt(ctx, v, v.Head); err != nil {
			return err
		}
		if err := l.withoutOpenCall(ctx, v, c.Start); err != nil {
			return err
		}
		forked, err := forkedEvent(v.Session, v.Head, c.Start)
		if err != nil {
			return err
		}
		c.Events = append(c.Events, forked)
	}
	body, err := json.Marshal(events.SubagentPreparedBody{
		PreparationID: c.PreparationID, ParentSID: events.SID(v.SID), ParentSessionKey: v.Key,
		ContextMode: string(mode), ParentSeq: v.Head, TTLMs: c.TTL.Milliseconds(),
	})
	c.Events = append(c.Events, store.NewEvent{Type: events.SubagentPrepared, Body: body})
	return err
}

// preparedBefore answers a preparation that was made already: a host that lost
// the answer asks again. A child of another parent, one of another kind and one
// that has begun are refused.
func (l *Lossless) preparedBefore(ctx context.Context, c *store.NewChild) (*contextengine.SubagentPreparation, error) {
	s, d, err := l.cfg.Log.ChildByKey(ctx, c.Tenant, c.Key)
	switch {
	case err != nil && !errors.Is(err, contextengine.ErrUnknownSession):
		return nil, err
	case err != nil || d.Parent != c.Parent || d.Kind != c.Kind || s.HostHead > 0 || d.EndReason != "":
		return nil, contextengine.ErrSessionExists
	}
	return l.preparation(c.Tenant, c.ParentKey, c.Key, d.PreparationID), nil
}

func (l *Lossless) preparation(tenant, parent, child, id string) *contextengine.SubagentPreparation {
	s := contextengine.Session{Tenant: tenant, SessionKey: parent}
	return &contextengine.SubagentPreparation{
		PreparationID: id,
		Rollback: func(ctx context.Context) error {
			_, err := l.RollbackSubagent(ctx, s, child)
			return err
		},
	}
}

// RollbackSubagent removes a prepared child that has not begun; nothing stays of
// it. The session is the parent or the child itself. It is false for a child that
// is not known there, and contextengine.ErrSubagentBegan for one that wrote.
func (l *Lossless) RollbackSubagent(ctx context.Context, s contextengine.Session, childKey string) (bool, error) {
	d, ok, err := l.child(ctx, s, childKey)
	if err != nil || !ok {
		return false, err
	}
	err = l.cfg.Log.RemoveChild(ctx, s.Tenant, childKey, d.SID)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return false, nil // somebody else was faster
	}
	return err == nil, err
}

// OnSubagentEnded notes in the child's log why it ended. Nothing is removed:
// "deleted" marks, and a child that was released may go on.
func (l *Lossless) OnSubagentEnded(ctx context.Context, p contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	none := contextengine.SubagentEndedResult{}
	if !p.Reason.Known() {
		return none, &contextengine.InvalidError{Field: "reason", Reason: "deleted, completed, swept or released"}
	}
	d, ok, err := l.child(ctx, p.Session, p.ChildSessionKey)
	if err != nil || !ok {
		return none, err
	}
	body, err := json.Marshal(events.SubagentEndedBody{Reason: string(p.Reason)})
	if err != nil {
		return none, err
	}
	err = l.cfg.Log.EndSubagent(ctx, p.Tenant, d, string(p.Reason), store.NewEvent{Type: events.SubagentEnded, Body: body})
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return none, nil
	}
	return contextengine.SubagentEndedResult{Ended: err == nil}, err
}

// child finds a sub-agent under its own key for its parent or itself.
func (l *Lossless) child(ctx context.Context, s contextengine.Session, childKey string) (store.Descent, bool, error) {
	if s.SessionKey == "" {
		s.SessionKey = childKey
	}
	if err := checkSession(s); err != nil {
		return store.Descent{}, false, err
	}
	if err := checkChildKey("childSessionKey", childKey); err != nil {
		return store.Descent{}, false, err
	}
	_, d, err := l.cfg.Log.ChildByKey(ctx, s.Tenant, childKey)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return store.Descent{}, false, nil
	}
	known := d.Subagent() && (s.SessionKey == childKey || s.SessionKey == d.ParentKey)
	return d, known && err == nil, err
}
