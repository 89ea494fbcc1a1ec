package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// summaryPage is how many summaries an erasure reads at a time.
const summaryPage = 200

// DropAncestor makes a session forget what it inherited from an erased one: its
// epoch steps, the inherited part leaves its path in every recorded state, and
// the texts of its own summaries that were made of any of it are blanked, with
// the drafts. It may come before or after the ancestor's own rows go. Where
// nothing is inherited from that session it changes nothing and answers with the
// session as it is.
func (s *Store) DropAncestor(ctx context.Context, tenant, key string, erased uuid.UUID) (Stepped, error) {
	var out Stepped
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		var err error
		out, err = s.dropAncestor(ctx, q, tenant, key, erased)
		return err
	})
	return out, errUnavailable(err)
}

// dropAncestor is DropAncestor within a transaction.
func (s *Store) dropAncestor(ctx context.Context, q *db.Queries, tenant, key string, erased uuid.UUID) (Stepped, error) {
	if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
		return Stepped{}, fmt.Errorf("lock: %w", err)
	}
	r, err := q.SessionWithState(ctx, db.SessionWithStateParams{TenantID: tenant, SessionKey: key})
	if err != nil {
		return Stepped{}, readErr("session", err)
	}
	cur := sessionOf(r.Session)
	state, err := events.DecodeState(r.State)
	if err != nil {
		return Stepped{}, err
	}
	next, inherits := state.WithoutAncestor(events.SID(erased))
	if !inherits {
		return Stepped{Head: cur.Head, Epoch: cur.Epoch}, nil
	}
	through := next.Line[0].To
	if err := s.blankSummaries(ctx, q, cur, through); err != nil {
		return Stepped{}, err
	}
	if err := forgetInStates(ctx, q, cur, erased); err != nil {
		return Stepped{}, err
	}
	if err := dropDrafts(ctx, q, tenant, cur.SID); err != nil {
		return Stepped{}, err
	}
	body, err := json.Marshal(events.AncestorErasedBody{SID: events.SID(erased), Through: through})
	if err != nil {
		return Stepped{}, err
	}
	next.Cause = events.CauseAncestor
	out, err := s.commitStep(ctx, q, cur, EpochStep{
		Events: []NewEvent{{Type: events.AncestorErased, Body: body}}, State: next,
		LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, HoldOffset: cur.HoldOffset, PaysDebt: true,
	})
	if err != nil {
		return Stepped{}, err
	}
	err = q.StayIdle(ctx, db.StayIdleParams{TenantID: tenant, Sids: []uuid.UUID{cur.SID}, Ats: []time.Time{cur.UpdatedAt}})
	if err != nil {
		return Stepped{}, fmt.Errorf("idleness: %w", err)
	}
	return out, nil
}

// forgetInStates takes an ancestor out of every recorded state.
func forgetInStates(ctx context.Context, q *db.Queries, cur Session, erased uuid.UUID) error {
	rows, err := q.StatesOf(ctx, db.StatesOfParams{TenantID: cur.Tenant, SID: cur.SID})
	if err != nil {
		return fmt.Errorf("states: %w", err)
	}
	for _, r := range rows {
		old, err := events.DecodeState(r.State)
		if err != nil {
			return err
		}
		next, inherits := old.WithoutAncestor(events.SID(erased))
		if !inherits {
			continue
		}
		body, err := events.EncodeState(next)
		if err != nil {
			return err
		}
		if err := q.RewriteState(ctx, db.RewriteStateParams{TenantID: cur.Tenant, SID: cur.SID, AsOf: r.AsOf, State: body}); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	return nil
}

// blankSummaries empties the texts of a session's own summaries that cover
// anything up to a place.
func (s *Store) blankSummaries(ctx context.Context, q *db.Queries, cur Session, through int64) error {
	open := s.openerIn(q, cur.Tenant, cur.SID)
	for after := int64(0); ; {
		rows, err := q.EventsOfType(ctx, db.EventsOfTypeParams{
			TenantID: cur.Tenant, SID: cur.SID, Type: int16(events.SummaryCreated), After: after, Upto: cur.Head, MaxRows: summaryPage,
		})
		if err != nil {
			return fmt.Errorf("summaries: %w", err)
		}
		for _, r := range rows {
			after = r.Seq
			plain, err := open.event(ctx, r.Seq, r.Body)
			if unreadable(err) {
				continue // for everybody
			}
			if err != nil {
				return err
			}
			var b events.SummaryBody
			if err := json.Unmarshal(plain, &b); err != nil {
				return fmt.Errorf("summary %d: %w", r.Seq, err)
			}
			if !events.AnyUpTo(b.Covers, through) {
				continue
			}
			body, err := json.Marshal(erasedSummary(b))
			if err != nil {
				return err
			}
			if body, err = open.replacing(ctx, r.Body, body); err == nil {
				err = q.RewriteEvent(ctx, db.RewriteEventParams{TenantID: cur.Tenant, SID: cur.SID, Seq: r.Seq, Body: body})
			}
			if err != nil {
				return fmt.Errorf("summary %d: %w", r.Seq, err)
			}
		}
		if len(rows) < summaryPage {
			break
		}
	}
	if err := q.DropUnusedBodies(ctx, db.DropUnusedBodiesParams{TenantID: cur.Tenant, SID: cur.SID}); err != nil {
		return fmt.Errorf("bodies: %w", err)
	}
	return nil
}
