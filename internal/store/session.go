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
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/window"
)

// Session is the row of a session.
type Session struct {
	Tenant, Key           string
	SID                   uuid.UUID
	Head, HostHead, Epoch int64
	LeafSeq, LeafOffset   int64
	BaseOffset            int64
	HoldOffset            int64
	FactorMilli           int
	TokenBudget           int64
	Dialect               message.Dialect
	Gateway, HostSession  string
	// Sealed: what it says is encrypted.
	Sealed               bool
	CreatedAt, UpdatedAt time.Time
}

// LiveTokens is the calibrated estimate of the untrimmed window.
func (s Session) LiveTokens() int64 {
	return (s.LeafOffset - s.BaseOffset) * int64(s.FactorMilli) / 1000
}

func sessionOf(r db.Session) Session {
	return Session{
		Tenant: r.TenantID, Key: r.SessionKey, SID: r.SID, Head: r.Head, HostHead: r.HostHead, Epoch: r.Epoch,
		LeafSeq: r.LeafSeq, LeafOffset: r.LeafOffset, BaseOffset: r.BaseOffset, HoldOffset: r.HoldOffset,
		FactorMilli: int(r.FactorMilli), TokenBudget: r.TokenBudget, Dialect: message.Dialect(r.Dialect),
		Gateway: deref(r.Gateway), HostSession: deref(r.HostSessionID), Sealed: r.Sealed, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Session reads a session by its key.
func (s *Store) Session(ctx context.Context, tenant, key string) (Session, error) {
	r, err := settled(ctx, s, func() (db.SessionByKeyRow, error) {
		return s.of(tenant).SessionByKey(ctx, db.SessionByKeyParams{TenantID: tenant, SessionKey: key})
	}, func(r db.SessionByKeyRow) (db.Session, bool) { return r.Session, r.Forgets })
	if err != nil {
		return Session{}, readErr("session", err)
	}
	return sessionOf(r.Session), nil
}

// SessionBySID reads a session by our id of it.
func (s *Store) SessionBySID(ctx context.Context, tenant string, sid uuid.UUID) (Session, error) {
	r, err := settled(ctx, s, func() (db.SessionBySIDRow, error) {
		return s.of(tenant).SessionBySID(ctx, db.SessionBySIDParams{TenantID: tenant, SID: sid})
	}, func(r db.SessionBySIDRow) (db.Session, bool) { return r.Session, r.Forgets })
	if err != nil {
		return Session{}, readErr("session", err)
	}
	return sessionOf(r.Session), nil
}

// SessionListing is a session and what it owes.
type SessionListing struct {
	Session
	// DebtTokens is 0 for a session without debt.
	DebtTokens int64
}

// Sessions lists a tenant's sessions by key, after the given one.
func (s *Store) Sessions(ctx context.Context, tenant, after, holding string, limit int) ([]SessionListing, error) {
	rows, err := s.of(tenant).ListSessions(ctx, db.ListSessionsParams{TenantID: tenant, After: after, Holding: holding, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("sessions", err)
	}
	out := make([]SessionListing, len(rows))
	for i, r := range rows {
		out[i].Session = sessionOf(db.Session{
			TenantID: r.TenantID, SID: r.SID, SessionKey: r.SessionKey, Head: r.Head, HostHead: r.HostHead,
			Epoch: r.Epoch, LeafSeq: r.LeafSeq, LeafOffset: r.LeafOffset, BaseOffset: r.BaseOffset,
			HoldOffset: r.HoldOffset, FactorMilli: r.FactorMilli, TokenBudget: r.TokenBudget, Dialect: r.Dialect,
			Gateway: r.Gateway, HostSessionID: r.HostSessionID, Sealed: r.Sealed, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		})
		if r.DebtTokens != nil {
			out[i].DebtTokens = *r.DebtTokens
		}
	}
	return out, nil
}

// View is what an assemble reads in one round trip.
type View struct {
	Session
	State events.State
	// New are the messages after the cached head, with Bodies beside them. It
	// stops at the limit asked for; the caller compares with Head.
	New    []window.Entry
	Bodies [][]byte
}

// View reads a session, its state and up to limit messages after cachedHead,
// if the session still is the cached one.
func (s *Store) View(ctx context.Context, tenant, key string, cached uuid.UUID, cachedHead int64, limit int) (View, error) {
	r, err := settled(ctx, s, func() (db.SessionViewRow, error) {
		return s.of(tenant).SessionView(ctx, db.SessionViewParams{
			TenantID: tenant, SessionKey: key, CachedSID: cached, CachedHead: cachedHead, MaxRows: int32(limit),
		})
	}, func(r db.SessionViewRow) (db.Session, bool) { return r.Session, r.Forgets })
	if err != nil {
		return View{}, readErr("session", err)
	}
	v := View{Session: sessionOf(r.Session), Bodies: r.Bodies}
	if v.State, err = events.DecodeState(r.State); err != nil {
		return View{}, err
	}
	v.New = make([]window.Entry, len(r.Seqs))
	open := s.openerOf(v.Session)
	for i := range r.Seqs {
		if v.Bodies[i], err = open.event(ctx, r.Seqs[i], r.Bodies[i]); err != nil {
			return View{}, err
		}
		if v.New[i], err = entryOf(r.Seqs[i], r.Roles[i], r.Tokens[i], r.Flags[i], r.Links[i], r.Offsets[i]); err != nil {
			return View{}, err
		}
	}
	return v, nil
}

// StateAsOf reads the state that held when the head was seq.
func (s *Store) StateAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (events.State, error) {
	r, err := s.of(tenant).StateAsOf(ctx, db.StateAsOfParams{TenantID: tenant, SID: sid, AsOf: seq})
	if errors.Is(err, pgx.ErrNoRows) {
		return events.FirstState(), nil
	}
	if err != nil {
		return events.State{}, readErr("state", err)
	}
	return events.DecodeState(r.State)
}

// StateOfEpoch reads the state with which an epoch began.
func (s *Store) StateOfEpoch(ctx context.Context, tenant string, sid uuid.UUID, epoch int64) (events.State, error) {
	body, err := s.of(tenant).StateOfEpoch(ctx, db.StateOfEpochParams{TenantID: tenant, SID: sid, Epoch: epoch})
	if errors.Is(err, pgx.ErrNoRows) {
		return events.FirstState(), nil
	}
	if err != nil {
		return events.State{}, readErr("state", err)
	}
	return events.DecodeState(body)
}

// readErr wraps a read's error; a missing row is an unknown session.
func readErr(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return contextengine.ErrUnknownSession
	}
	return fmt.Errorf("%s: %w", what, errUnavailable(err))
}

// DialectAsOf is the session's dialect as it was known when a seq was its head.
func (s *Store) DialectAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (message.Dialect, error) {
	d, err := s.of(tenant).DialectAsOf(ctx, db.DialectAsOfParams{TenantID: tenant, SID: sid, AsOf: seq})
	if err != nil {
		return message.Neutral, readErr("dialect", err)
	}
	return message.Dialect(d), nil
}

func entryOf(seq int64, role int16, tokens, flags int32, links []byte, offset int64) (window.Entry, error) {
	f, err := factsOf(role, tokens, flags, links)
	if err != nil {
		return window.Entry{}, fmt.Errorf("event %d: %w", seq, err)
	}
	return window.Entry{Seq: seq, Facts: f, Offset: offset}, nil
}

func factsOf(role int16, tokens, flags int32, links []byte) (message.Facts, error) {
	calls, results, err := message.DecodeLinks(links)
	if err != nil {
		return message.Facts{}, err
	}
	const flagMask = 1<<dialectShift - 1
	return message.Facts{
		Dialect: message.Dialect(flags >> dialectShift & 3), Role: message.Role(role),
		Flags: message.Flags(flags & flagMask), Tokens: int(tokens), Calls: calls, Results: results,
	}, nil
}
