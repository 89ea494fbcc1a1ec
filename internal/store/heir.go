package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// disinherit makes all that inherit from a session forget what they have of it,
// in the transaction that buries it, so that it is gone from everywhere at once.
// locked are the keys whose locks are held; a fork that came before them is
// errNewHeir.
func (s *Store) disinherit(ctx context.Context, q *db.Queries, tenant string, sid uuid.UUID, locked []string) error {
	heirs, err := inheritors(ctx, q, tenant, sid)
	if err != nil {
		return err
	}
	for _, h := range heirs {
		if !slices.Contains(locked, h.Key) {
			return errNewHeir
		}
	}
	for _, h := range heirs {
		_, err := s.dropAncestor(ctx, q, tenant, h.Key, sid)
		if errors.Is(err, contextengine.ErrUnknownSession) {
			continue
		}
		if err != nil {
			return fmt.Errorf("heir %s: %w", h.SID, err)
		}
	}
	return nil
}

// disguiseParent takes an erased session's key out of those that descend from
// it, forks and sub-agents alike: out of their lineage and the events that
// began them.
func (s *Store) disguiseParent(ctx context.Context, tenant string, parent uuid.UUID) error {
	const page = 200
	for {
		rows, err := s.of(tenant).ChildrenNaming(ctx, db.ChildrenNamingParams{TenantID: tenant, ParentSID: parent, MaxRows: page})
		if err != nil {
			return readErr("lineage", err)
		}
		for _, r := range rows {
			if err := s.disguiseIn(ctx, tenant, r.SID, events.SID(parent), r.Disguise); err != nil {
				return err
			}
			// Last, as it ends the search for this child.
			err := s.of(tenant).DisguiseParent(ctx, db.DisguiseParentParams{TenantID: tenant, SID: r.SID, Disguise: r.Disguise})
			if err != nil {
				return fmt.Errorf("lineage: %w", errUnavailable(err))
			}
		}
		if len(rows) < page {
			return nil
		}
	}
}

// disguiseIn rewrites the events of a child that name its parent.
func (s *Store) disguiseIn(ctx context.Context, tenant string, child uuid.UUID, parent events.SID, disguise string) error {
	const most = 1000
	for _, t := range []events.Type{events.Forked, events.SubagentPrepared} {
		rows, err := s.EventsOfType(ctx, tenant, child, t, 0, events.Open, most)
		if unreadable(err) {
			continue // for everybody
		}
		if err != nil {
			return err
		}
		for _, e := range rows {
			body, err := disguised(e, parent, disguise)
			if err != nil {
				return fmt.Errorf("event %d: %w", e.Seq, err)
			}
			if body == nil {
				continue
			}
			open := s.opener(tenant, child)
			sealer, err := open.perhaps(ctx)
			if err != nil {
				return err
			}
			if err := s.rewriteEvent(ctx, s.of(tenant), open, e.Seq, body, sealer != nil); err != nil {
				return fmt.Errorf("event %d: %w", e.Seq, errUnavailable(err))
			}
		}
	}
	return nil
}

// disguised is the body of an event that names a parent, with another name;
// nil where it names somebody else.
func disguised(e events.Event, parent events.SID, name string) ([]byte, error) {
	switch e.Type {
	case events.Forked:
		var b events.ForkedBody
		if err := json.Unmarshal(e.Body, &b); err != nil || b.ParentSID != parent {
			return nil, err
		}
		b.ParentSessionKey = name
		return json.Marshal(b)
	case events.SubagentPrepared:
		var b events.SubagentPreparedBody
		if err := json.Unmarshal(e.Body, &b); err != nil || b.ParentSID != parent {
			return nil, err
		}
		b.ParentSessionKey = name
		return json.Marshal(b)
	}
	return nil, nil
}
