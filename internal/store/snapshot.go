package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// SessionID names one life of a session.
type SessionID struct {
	Tenant string
	SID    uuid.UUID
	Key    string
}

// SessionsAfter lists all sessions of all tenants behind a place, in the order
// of their ids; the zero value is the beginning.
func (s *Store) SessionsAfter(ctx context.Context, after SessionID, limit int) ([]SessionID, error) {
	rows, err := s.everyone.SessionsAfter(ctx, db.SessionsAfterParams{AfterTenant: after.Tenant, AfterSID: after.SID, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("sessions", err)
	}
	out := make([]SessionID, len(rows))
	for i, r := range rows {
		out[i] = SessionID{Tenant: r.TenantID, SID: r.SID, Key: r.SessionKey}
	}
	return out, nil
}

// StrayDebts are debts of sessions that do not exist.
func (s *Store) StrayDebts(ctx context.Context, limit int) ([]SessionID, error) {
	rows, err := s.everyone.StrayDebts(ctx, db.StrayDebtsParams{MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("debts", err)
	}
	out := make([]SessionID, len(rows))
	for i, r := range rows {
		out[i] = SessionID{Tenant: r.TenantID, SID: r.SID}
	}
	return out, nil
}

// Snapshot reads one session as it was at one moment.
type Snapshot struct {
	store *Store
	q     *db.Queries
	id    SessionID
}

// InSnapshot runs fn on a session while others write to it. It holds no lock.
func (s *Store) InSnapshot(ctx context.Context, id SessionID, fn func(*Snapshot) error) error {
	err := s.inSnapshot(ctx, id.Tenant, func(q *db.Queries) error { return fn(&Snapshot{store: s, q: q, id: id}) })
	return errUnavailable(err)
}

// Session is the session's row; contextengine.ErrUnknownSession where it has gone.
func (v *Snapshot) Session(ctx context.Context) (Session, error) {
	r, err := v.q.SessionBySID(ctx, db.SessionBySIDParams{TenantID: v.id.Tenant, SID: v.id.SID})
	if err != nil {
		return Session{}, readErr("session", err)
	}
	return sessionOf(r.Session), nil
}

// RecordedState is a state and the seq of the step that it holds from.
type RecordedState struct {
	AsOf int64
	events.State
	// Err says that the stored form cannot be read.
	Err error
}

// States are the session's recorded states, oldest first.
func (v *Snapshot) States(ctx context.Context) ([]RecordedState, error) {
	rows, err := v.q.StatesOf(ctx, db.StatesOfParams{TenantID: v.id.Tenant, SID: v.id.SID})
	if err != nil {
		return nil, readErr("states", err)
	}
	out := make([]RecordedState, len(rows))
	for i, r := range rows {
		out[i].AsOf = r.AsOf
		out[i].State, out[i].Err = events.DecodeState(r.State)
	}
	return out, nil
}

// Logged is an event with what is stored beside its body.
type Logged struct {
	events.Event
	PayloadHash []byte
	// Found and Intact tell of a body that is kept apart or encrypted.
	Found, Intact bool
	// FactsErr says that the stored facts cannot be read.
	FactsErr error
}

// Log reads events after a seq; it stops behind the body with which maxBytes
// are reached.
func (v *Snapshot) Log(ctx context.Context, after int64, limit int, maxBytes int64) ([]Logged, error) {
	rows, err := v.q.LogAfter(ctx, db.LogAfterParams{
		TenantID: v.id.Tenant, SID: v.id.SID, After: after, MaxRows: int32(limit), MaxBytes: maxBytes,
	})
	if err != nil {
		return nil, readErr("events", err)
	}
	out := make([]Logged, len(rows))
	open := v.store.openerIn(v.q, v.id.Tenant, v.id.SID)
	for i, r := range rows {
		body, err := open.event(ctx, r.Seq, r.Body)
		if err != nil && !unreadable(err) {
			return nil, err
		}
		hash, hashErr := open.hash(ctx, r.PayloadHash)
		if hashErr != nil {
			return nil, hashErr
		}
		out[i] = Logged{PayloadHash: hash, Found: r.Found, Intact: r.Intact && err == nil}
		facts, err := factsOf(r.Role, r.Tokens, r.Flags, r.Links)
		out[i].FactsErr = err
		out[i].Event = events.Event{
			Seq: r.Seq, Type: events.Type(r.Type), ParentSeq: r.ParentSeq, Epoch: r.Epoch, Body: body,
			ReaderVersion: r.ReaderVersion, Facts: facts, Offset: r.OffsetTokens,
		}
	}
	return out, nil
}

// KeyFaults says what is wrong with the session's keys, at most limit times.
func (v *Snapshot) KeyFaults(ctx context.Context, limit int) ([]string, error) {
	bad, err := v.q.BadKeys(ctx, db.BadKeysParams{TenantID: v.id.Tenant, SID: v.id.SID, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("keys", err)
	}
	var out []string
	for _, k := range bad {
		if k.Found {
			out = append(out, fmt.Sprintf("a key of kind %d names seq %d with another payload", k.Kind, k.Seq))
		} else {
			out = append(out, fmt.Sprintf("a key of kind %d names seq %d, which is not there", k.Kind, k.Seq))
		}
	}
	lost, err := v.q.TurnsWithoutKey(ctx, db.TurnsWithoutKeyParams{TenantID: v.id.Tenant, SID: v.id.SID, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("keys", err)
	}
	for _, seq := range lost {
		out = append(out, fmt.Sprintf("the turn committed at seq %d has no key", seq))
	}
	return out, nil
}

// Debt is what the session owes; ok is false when it owes nothing.
func (v *Snapshot) Debt(ctx context.Context) (epoch int64, ok bool, err error) {
	d, err := v.q.DebtOf(ctx, db.DebtOfParams{TenantID: v.id.Tenant, SID: v.id.SID})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, readErr("debt", err)
	}
	return d.Epoch, true, nil
}

// Linked reports whether a transcript has named events of the session.
func (v *Snapshot) Linked(ctx context.Context) (bool, error) {
	_, err := v.q.NewestOfType(ctx, db.NewestOfTypeParams{
		TenantID: v.id.Tenant, SID: v.id.SID, Type: int16(events.IdentityLinked), Upto: math.MaxInt64,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, readErr("links", err)
	}
	return true, nil
}
