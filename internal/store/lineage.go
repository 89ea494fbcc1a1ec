package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// Descent is how one session descends from another.
type Descent struct {
	SID        uuid.UUID
	SessionKey string
	Parent     uuid.UUID
	ParentKey  string
	Kind       Kind
	// ParentSeq is the parent's head then.
	ParentSeq     int64
	PreparationID string
	// ExpiresAt is when a sub-agent that never writes is removed; zero for never.
	ExpiresAt time.Time
	// EndReason is a sub-agent's newest; empty before its end.
	EndReason string
	EndedAt   time.Time
	CreatedAt time.Time
}

// Subagent reports whether the session was prepared as a sub-agent.
func (d Descent) Subagent() bool { return d.Kind == KindIsolated || d.Kind == KindForkedSubagent }

func descentOf(key string, r db.Lineage) Descent {
	d := Descent{
		SID: r.SID, SessionKey: key, Parent: r.ParentSID, ParentKey: r.ParentKey, Kind: Kind(r.Kind), ParentSeq: r.AtSeq,
		PreparationID: deref(r.PreparationID), EndReason: deref(r.EndReason), CreatedAt: r.CreatedAt,
	}
	if r.ExpiresAt != nil {
		d.ExpiresAt = *r.ExpiresAt
	}
	if r.EndedAt != nil {
		d.EndedAt = *r.EndedAt
	}
	return d
}

// DescentOf tells of whom a session descends; ok is false for one that began by
// itself.
func (s *Store) DescentOf(ctx context.Context, tenant string, sid uuid.UUID, key string) (d Descent, ok bool, err error) {
	r, err := s.of(tenant).LineageOf(ctx, db.LineageOfParams{TenantID: tenant, SID: sid})
	if errors.Is(err, pgx.ErrNoRows) {
		return Descent{}, false, nil
	}
	if err != nil {
		return Descent{}, false, readErr("lineage", err)
	}
	return descentOf(key, r), true, nil
}

// Children are the sessions that descend directly from one, newest first.
func (s *Store) Children(ctx context.Context, tenant string, sid uuid.UUID, limit int) ([]Descent, error) {
	rows, err := s.of(tenant).ChildrenOf(ctx, db.ChildrenOfParams{TenantID: tenant, ParentSID: sid, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("lineage", err)
	}
	out := make([]Descent, len(rows))
	for i, r := range rows {
		out[i] = descentOf(r.SessionKey, r.Lineage)
	}
	return out, nil
}

// ChildByKey finds a session that descends from another, and its row.
func (s *Store) ChildByKey(ctx context.Context, tenant, key string) (Session, Descent, error) {
	r, err := settled(ctx, s, func() (db.LineageByKeyRow, error) {
		return s.of(tenant).LineageByKey(ctx, db.LineageByKeyParams{TenantID: tenant, SessionKey: key})
	}, func(r db.LineageByKeyRow) (db.Session, bool) { return r.Session, r.Forgets })
	if err != nil {
		return Session{}, Descent{}, readErr("lineage", err)
	}
	return sessionOf(r.Session), descentOf(key, r.Lineage), nil
}

func childByKey(ctx context.Context, q *db.Queries, tenant, key string) (Session, Descent, error) {
	r, err := q.LineageByKey(ctx, db.LineageByKeyParams{TenantID: tenant, SessionKey: key})
	if err != nil {
		return Session{}, Descent{}, readErr("lineage", err)
	}
	return sessionOf(r.Session), descentOf(key, r.Lineage), nil
}

// Inheritor is a session that reads some of its window from another one.
type Inheritor struct {
	SID uuid.UUID
	Key string
	// Depth is 1 for a direct fork.
	Depth int
}

// Inheritors are all sessions that inherit from one, through however many
// forks, parents before children.
func (s *Store) Inheritors(ctx context.Context, tenant string, sid uuid.UUID) ([]Inheritor, error) {
	rows, err := s.of(tenant).InheritorsOf(ctx, db.InheritorsOfParams{TenantID: tenant, SID: sid})
	if err != nil {
		return nil, readErr("lineage", err)
	}
	out := make([]Inheritor, len(rows))
	for i, r := range rows {
		out[i] = Inheritor{SID: r.SID, Key: r.SessionKey, Depth: int(r.Depth)}
	}
	return out, nil
}

// EndSubagent notes why a child ended, in its log. The same reason again adds
// nothing.
func (s *Store) EndSubagent(ctx context.Context, tenant string, d Descent, reason string, e NewEvent) error {
	return errUnavailable(s.within(ctx, tenant, func(q *db.Queries) error {
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: d.SessionKey}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		cur, now, err := childByKey(ctx, q, tenant, d.SessionKey)
		switch {
		case err != nil:
			return err
		case now.SID != d.SID:
			return contextengine.ErrUnknownSession
		case now.EndReason == reason:
			return nil
		}
		it := &Item{Tenant: tenant, SessionKey: d.SessionKey, Events: []NewEvent{e}}
		if it, err = s.sealTo(ctx, cur, true, it); err != nil {
			return err
		}
		outs, err := run(ctx, q, s.params([]*Item{it}, false))
		if err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if _, err := outs[0].result(it); err != nil {
			return err
		}
		return q.EndLineage(ctx, db.EndLineageParams{TenantID: tenant, SID: d.SID, EndReason: &reason})
	}))
}

// RemoveChild removes a sub-agent that never wrote, without a trace. It is
// contextengine.ErrSubagentBegan where a host wrote or forks descend from it,
// and contextengine.ErrUnknownSession where that life has gone already.
func (s *Store) RemoveChild(ctx context.Context, tenant, key string, sid uuid.UUID) error {
	err := errUnavailable(s.within(ctx, tenant, func(q *db.Queries) error {
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		cur, d, err := childByKey(ctx, q, tenant, key)
		switch {
		case err != nil:
			return err
		case cur.SID != sid || !d.Subagent():
			return contextengine.ErrUnknownSession
		case cur.HostHead > 0:
			return contextengine.ErrSubagentBegan
		}
		forked, err := q.HasChildren(ctx, db.HasChildrenParams{TenantID: tenant, SID: sid})
		if err != nil {
			return fmt.Errorf("lineage: %w", err)
		}
		if forked {
			return contextengine.ErrSubagentBegan
		}
		return q.ForgetSession(ctx, db.ForgetSessionParams{TenantID: tenant, SID: sid})
	}))
	if err != nil || s.cfg.Vault == nil {
		return err
	}
	s.pins.drop(pinKey{tenant, key})
	if err := s.cfg.Vault.Destroy(ctx, tenant, sid); err != nil {
		s.log.Warn("the key of a session that was removed is left", "sid", sid, "error", err)
	}
	return nil
}

// SweepChildren removes sub-agents whose time to begin is over and keeps those
// that have begun, at most limit of both. more tells that there may be others.
func (s *Store) SweepChildren(ctx context.Context, limit int) (removed int, more bool, err error) {
	due, err := s.everyone.ExpiredChildren(ctx, db.ExpiredChildrenParams{MaxRows: int32(limit)})
	if err != nil {
		return 0, false, readErr("lineage", err)
	}
	for _, c := range due {
		err := s.RemoveChild(ctx, c.TenantID, c.SessionKey, c.SID)
		switch {
		case err == nil:
			removed++
		case errors.Is(err, contextengine.ErrSubagentBegan):
			if err := s.of(c.TenantID).KeepChild(ctx, db.KeepChildParams{TenantID: c.TenantID, SID: c.SID}); err != nil {
				return removed, false, readErr("lineage", err)
			}
		case errors.Is(err, contextengine.ErrUnknownSession): // somebody else was faster
		default:
			return removed, false, err
		}
	}
	return removed, len(due) == limit, nil
}

// erasedSummary is what stays of a summary that was made of erased messages.
func erasedSummary(b events.SummaryBody) events.SummaryBody {
	return events.SummaryBody{
		Level: b.Level, Sources: b.Sources, Children: b.Children, Covers: b.Covers, CoveredTokens: b.CoveredTokens,
		Tokens: b.Tokens, SourceTokens: b.SourceTokens, Summarizer: b.Summarizer, Timestamp: b.Timestamp,
	}
}
