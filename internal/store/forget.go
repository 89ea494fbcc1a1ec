package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// An erasure does not wait for those who inherited of the session: it says in the
// table forgetting that they are to forget it. Each then does so in a short
// transaction of its own, whoever comes first: the erasure, a sweep, or whoever
// reads the heir, so that nobody reads one that has not.

// settled reads sessions that have nothing left to forget.
func settled[T any](ctx context.Context, s *Store, read func() (T, error), session func(T) (cur db.Session, forgets bool)) (T, error) {
	for {
		r, err := read()
		if err != nil {
			return r, err
		}
		cur, forgets := session(r)
		if !forgets {
			return r, nil
		}
		if err := s.forget(ctx, cur.TenantID, cur.SessionKey, cur.SID); err != nil {
			return r, err
		}
	}
}

// sessionWithState is settled for a transaction that holds the session's lock.
func (s *Store) sessionWithState(ctx context.Context, q *db.Queries, tenant, key string) (db.SessionWithStateRow, error) {
	r, err := q.SessionWithState(ctx, db.SessionWithStateParams{TenantID: tenant, SessionKey: key})
	if err != nil || !r.Forgets {
		return r, err
	}
	if err := s.forgetLocked(ctx, q, tenant, key, r.Session.SID); err != nil {
		return r, err
	}
	return q.SessionWithState(ctx, db.SessionWithStateParams{TenantID: tenant, SessionKey: key})
}

// forget has one session forget all that it is to.
func (s *Store) forget(ctx context.Context, tenant, key string, sid uuid.UUID) error {
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return s.forgetLocked(ctx, q, tenant, key, sid)
	})
	if err != nil {
		return fmt.Errorf("forget: %w", errUnavailable(err))
	}
	return nil
}

func (s *Store) forgetLocked(ctx context.Context, q *db.Queries, tenant, key string, sid uuid.UUID) error {
	ancestors, err := q.AncestorsToForget(ctx, db.AncestorsToForgetParams{TenantID: tenant, SID: sid})
	if err != nil {
		return fmt.Errorf("ancestors: %w", err)
	}
	for _, a := range ancestors {
		// One that is erased itself has nothing left to forget, and whoever has its
		// key since then inherited nothing.
		if _, err := s.dropAncestor(ctx, q, tenant, key, a); err != nil && !isUnknown(err) {
			return err
		}
		if err := s.disguiseParent(ctx, q, tenant, a, []uuid.UUID{sid}); err != nil {
			return err
		}
		if err := q.Forgot(ctx, db.ForgotParams{TenantID: tenant, Ancestor: a, Sids: []uuid.UUID{sid}}); err != nil {
			return fmt.Errorf("forgotten: %w", err)
		}
	}
	return nil
}

// forgetAncestor makes all that inherited from a buried session forget it, a
// batch at a time. No fork can be made of it any more, so what is listed is all
// there is. One that cannot forget does not keep the others from it.
func (s *Store) forgetAncestor(ctx context.Context, tenant string, ancestor uuid.UUID) error {
	var failed error
	for after := (uuid.UUID{}); ; {
		heirs, err := s.of(tenant).HeirsToForget(ctx, db.HeirsToForgetParams{TenantID: tenant, Ancestor: ancestor, After: after, MaxRows: heirBatch})
		if err != nil {
			return readErr("heirs", err)
		}
		left, err := s.forgetBatch(ctx, tenant, ancestor, heirs)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
				return err
			}
			// Whatever it was, alone it is told of whom.
			s.log.Warn("a batch of forks could not forget an erased session; each does alone", "sid", ancestor, "error", err)
			left = heirs
		}
		for _, h := range left {
			err := s.forget(ctx, tenant, h.SessionKey, h.SID)
			if err == nil {
				continue
			}
			if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
				return err
			}
			s.log.Warn("a fork could not forget an erased session", "sid", ancestor, "fork", h.SID, "error", err)
			if failed == nil {
				failed = fmt.Errorf("fork %s: %w", h.SID, err)
			}
		}
		if len(heirs) < heirBatch {
			return failed
		}
		after = heirs[len(heirs)-1].SID
	}
}

// disguiseChildren takes an erased session's key out of all that descend from it,
// those that inherited nothing too.
func (s *Store) disguiseChildren(ctx context.Context, tenant string, parent uuid.UUID) error {
	for {
		sids, err := s.of(tenant).ChildrenNaming(ctx, db.ChildrenNamingParams{TenantID: tenant, ParentSID: parent, MaxRows: heirBatch})
		if err != nil {
			return readErr("lineage", err)
		}
		if len(sids) > 0 {
			if err := s.disguiseParent(ctx, s.of(tenant), tenant, parent, sids); err != nil {
				return fmt.Errorf("lineage: %w", errUnavailable(err))
			}
		}
		if len(sids) < heirBatch {
			return nil
		}
	}
}

// disguiseParent takes an erased session's key, which may name a person, out of
// children's lineage and the events that began them.
func (s *Store) disguiseParent(ctx context.Context, q *db.Queries, tenant string, parent uuid.UUID, children []uuid.UUID) error {
	name, err := q.Disguise(ctx, db.DisguiseParams{TenantID: tenant, SID: parent})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // not erased
	}
	if err != nil {
		return fmt.Errorf("tombstone: %w", err)
	}
	rows, err := q.Beginnings(ctx, db.BeginningsParams{TenantID: tenant, Sids: children, Types: beginnings})
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	p := db.RewriteEventsParams{TenantID: tenant}
	for _, r := range rows {
		open := s.openerIn(q, tenant, r.SID)
		plain, err := open.event(ctx, r.Seq, r.Body)
		if unreadable(err) {
			continue // for everybody
		}
		if err != nil {
			return err
		}
		body, err := disguised(r.Type, plain, parent, name)
		if err != nil {
			return fmt.Errorf("event %d of %s: %w", r.Seq, r.SID, err)
		}
		if body == nil {
			continue
		}
		if body, err = open.replacing(ctx, r.Body, body); err != nil {
			return err
		}
		p.Sids, p.Seqs, p.Bodies = append(p.Sids, r.SID), append(p.Seqs, r.Seq), append(p.Bodies, body)
	}
	if len(p.Sids) > 0 {
		if err := q.RewriteEvents(ctx, p); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	// Last, as it ends the search for these children.
	return q.DisguiseParents(ctx, db.DisguiseParentsParams{TenantID: tenant, ParentSID: parent, Sids: children, Disguise: name})
}

// beginnings are the types of events that name a parent.
var beginnings = []int16{int16(events.Forked), int16(events.SubagentPrepared)}

// disguised is the body of an event that names a parent, with another name; nil
// where it names somebody else.
func disguised(typ int16, body []byte, parent uuid.UUID, name string) ([]byte, error) {
	switch events.Type(typ) {
	case events.Forked:
		var b events.ForkedBody
		if err := json.Unmarshal(body, &b); err != nil || b.ParentSID != events.SID(parent) {
			return nil, err
		}
		b.ParentSessionKey = name
		return json.Marshal(b)
	case events.SubagentPrepared:
		var b events.SubagentPreparedBody
		if err := json.Unmarshal(body, &b); err != nil || b.ParentSID != events.SID(parent) {
			return nil, err
		}
		b.ParentSessionKey = name
		return json.Marshal(b)
	}
	return nil, nil
}
