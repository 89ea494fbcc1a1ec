package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// Cursor is a place in the gap-safe order. The zero value is the beginning.
type Cursor struct {
	// Era is whose order it is; 0 for the reader's own that is of no other.
	Era      int64
	XID      uint64
	Position int64
}

// FeedEvent is an event with its place and its session.
type FeedEvent struct {
	Cursor     Cursor
	SessionKey string
	SID        uuid.UUID
	// Sealed: it is encrypted where it is stored.
	Sealed bool
	// Unreadable says why its body is null: the session's key was destroyed, or the
	// body is damaged.
	Unreadable error
	events.Event
}

// FeedWithin reads a tenant's events after a cursor, bounded in bytes as
// EventsWithin is. It shows only transactions that every later reader sees
// too, so a cursor never passes an event by. It is ErrFeedEra for a cursor of
// another era, and ErrFeedClosed where no order is safe.
func (s *Store) FeedWithin(ctx context.Context, tenant string, after Cursor, limit int, maxBytes int64) ([]FeedEvent, error) {
	return s.feed(ctx, tenant, after, limit, maxBytes, true)
}

// FeedBack is the place right before a tenant's newest n events: a page from
// there shows them.
func (s *Store) FeedBack(ctx context.Context, tenant string, n int) (Cursor, error) {
	era, err := s.eraOf(ctx, Cursor{})
	if err != nil {
		return Cursor{}, err
	}
	rows, err := s.of(tenant).FeedBack(ctx, db.FeedBackParams{TenantID: tenant, MaxRows: int32(n)})
	if err != nil {
		return Cursor{}, readErr("feed", err)
	}
	if len(rows) == 0 {
		return Cursor{}, nil
	}
	oldest := rows[len(rows)-1]
	return Cursor{Era: era, XID: oldest.Xid.Uint64, Position: oldest.Position - 1}, nil
}

// FeedUnopened is FeedWithin that leaves the bodies of what is encrypted out.
func (s *Store) FeedUnopened(ctx context.Context, tenant string, after Cursor, limit int, maxBytes int64) ([]FeedEvent, error) {
	return s.feed(ctx, tenant, after, limit, maxBytes, false)
}

func (s *Store) feed(ctx context.Context, tenant string, after Cursor, limit int, maxBytes int64, open bool) ([]FeedEvent, error) {
	era, err := s.eraOf(ctx, after)
	if err != nil {
		return nil, err
	}
	rows, err := s.of(tenant).FeedAfter(ctx, db.FeedAfterParams{
		TenantID: tenant, AfterXid: xid(after.XID), AfterPosition: after.Position, MaxRows: int32(limit), MaxBytes: max(maxBytes, 1),
	})
	if err != nil {
		return nil, readErr("feed", err)
	}
	again := false
	for _, r := range rows {
		if r.Forgets {
			again = true
			if err := s.forget(ctx, tenant, r.SessionKey, r.SID); err != nil {
				return nil, err
			}
		}
	}
	if again {
		return s.feed(ctx, tenant, after, limit, maxBytes, open)
	}
	out := make([]FeedEvent, len(rows))
	openers := map[uuid.UUID]*opener{}
	for i, r := range rows {
		body, sealed, broken := r.Body, r.Sealed || vault.IsSealed(r.Body), error(nil)
		if sealed && !open {
			body = nil
		} else if sealed {
			if openers[r.SID] == nil {
				openers[r.SID] = s.openerOf(Session{Tenant: tenant, SID: r.SID, Sealed: r.Sealed, Head: r.Seq})
			}
			if body, err = openers[r.SID].event(ctx, r.Seq, r.Body); unreadable(err) {
				body, broken = []byte("null"), err
				s.log.Warn("an event of the feed is unreadable", "sid", r.SID, "seq", r.Seq, "error", err)
			} else if err != nil {
				return nil, err
			}
		}
		facts, err := factsOf(r.Role, r.Tokens, r.Flags, nil)
		if err != nil {
			return nil, err
		}
		out[i] = FeedEvent{
			Cursor: Cursor{Era: era, XID: r.Xid.Uint64, Position: r.Position}, SessionKey: r.SessionKey, SID: r.SID,
			Sealed: sealed, Unreadable: broken,
			Event: events.Event{
				Seq: r.Seq, Type: events.Type(r.Type), ParentSeq: r.ParentSeq, Epoch: r.Epoch, Gateway: r.Gateway,
				HostSessionID: r.HostSessionID, Body: body, RecordedAt: r.RecordedAt, Facts: facts,
			},
		}
	}
	return out, nil
}

// Notice is the ids of an event that others are told about.
type Notice struct {
	Cursor     Cursor
	Tenant     string
	SID        uuid.UUID
	Seq, Epoch int64
	Type       events.Type
}

// Notices reads turn and epoch events of all tenants after a cursor; none where
// the feed is closed. A cursor of another era is ErrFeedEra.
func (s *Store) Notices(ctx context.Context, after Cursor, limit int) ([]Notice, error) {
	era, err := s.eraOf(ctx, after)
	if errors.Is(err, ErrFeedClosed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.everyone.NoticesAfter(ctx, db.NoticesAfterParams{
		AfterXid: xid(after.XID), AfterPosition: after.Position, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, readErr("notices", err)
	}
	out := make([]Notice, len(rows))
	for i, r := range rows {
		out[i] = Notice{
			Cursor: Cursor{Era: era, XID: r.Xid.Uint64, Position: r.Position}, Tenant: r.TenantID, SID: r.SID,
			Seq: r.Seq, Epoch: r.Epoch, Type: events.Type(r.Type),
		}
	}
	return out, nil
}

// Checkpoint reads how far a named reader has come in the present era.
func (s *Store) Checkpoint(ctx context.Context, name string) (Cursor, error) {
	era, err := s.era(ctx)
	if errors.Is(err, ErrFeedClosed) {
		return Cursor{}, nil
	}
	if err != nil {
		return Cursor{}, err
	}
	r, err := s.everyone.Checkpoint(ctx, db.CheckpointParams{Name: inEra(name, era)})
	if errors.Is(err, pgx.ErrNoRows) {
		return Cursor{}, nil
	}
	if err != nil {
		return Cursor{}, readErr("checkpoint", err)
	}
	return Cursor{Era: era, XID: r.Xid.Uint64, Position: r.Position}, nil
}

// SaveCheckpoint moves a named reader forward, never back.
func (s *Store) SaveCheckpoint(ctx context.Context, name string, c Cursor) error {
	err := s.everyone.SaveCheckpoint(ctx, db.SaveCheckpointParams{Name: inEra(name, c.Era), Xid: xid(c.XID), Position: c.Position})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", errUnavailable(err))
	}
	return nil
}

func xid(n uint64) pgtype.Uint64 { return pgtype.Uint64{Uint64: n, Valid: true} }

// Answer is what one assemble was asked and answered.
type Answer struct {
	Tenant      string
	SID         uuid.UUID
	Head, Epoch int64
	Params      []byte
	Fingerprint string
	Tokens      int
	At          time.Time
}

// RecordAnswers writes a batch of answers.
func (s *Store) RecordAnswers(ctx context.Context, answers []Answer) error {
	var p db.RecordAnswersParams
	for i := range answers {
		a := &answers[i]
		params := a.Params
		// What was never said holds no passages.
		if s.cfg.Vault != nil && a.Head > 0 {
			var err error
			params, err = s.opener(a.Tenant, a.SID).seal(ctx, vault.Answer, nil, a.Params)
			switch {
			case errors.Is(err, vault.ErrKeyGone):
				continue // an erasure destroyed it
			case unreadable(err) || errors.Is(err, vault.ErrMaster):
				s.log.Warn("what a window answered is not recorded", "sid", a.SID, "error", err)
				continue
			case err != nil:
				return err
			}
		}
		p.Params = append(p.Params, params)
		p.Sealed = append(p.Sealed, vault.IsSealed(params))
		p.TenantIds = append(p.TenantIds, a.Tenant)
		p.Sids = append(p.Sids, a.SID)
		p.Heads = append(p.Heads, a.Head)
		p.Epochs = append(p.Epochs, a.Epoch)
		p.Fingerprints = append(p.Fingerprints, a.Fingerprint)
		p.Tokens = append(p.Tokens, int32(a.Tokens))
		p.AnsweredAt = append(p.AnsweredAt, a.At)
	}
	if err := s.everyone.RecordAnswers(ctx, p); err != nil {
		return fmt.Errorf("window answers: %w", errUnavailable(err))
	}
	return nil
}

// AnswersAt reads what was answered when a session's head was at a seq, newest
// first. Answers are recorded in batches: the newest second may be missing.
func (s *Store) AnswersAt(ctx context.Context, tenant string, sid uuid.UUID, head int64, limit int) ([]Answer, error) {
	rows, err := s.of(tenant).AnswersAt(ctx, db.AnswersAtParams{TenantID: tenant, SID: sid, Head: head, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("window answers", err)
	}
	out := make([]Answer, len(rows))
	open := s.opener(tenant, sid)
	for i, r := range rows {
		params, err := open.bytes(ctx, vault.Answer, nil, r.Params)
		if err != nil {
			return nil, err
		}
		out[i] = Answer{Tenant: tenant, SID: sid, Head: head, Epoch: r.Epoch, Params: params, Fingerprint: r.Fingerprint}
	}
	return out, nil
}
