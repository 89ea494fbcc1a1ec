package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
	"github.com/engined/engined/internal/window"
)

// Lane names one transcript of a host under a session.
type Lane struct{ Gateway, HostSession string }

// LaneRow is how far a lane was read.
type LaneRow struct {
	Lane
	// Cursor is the host's own bookmark; nil before the first.
	Cursor []byte
	// Revision is the host's lifecycle revision as last heard.
	Revision string
	// Position is what the engine remembers of the lane's end.
	Position []byte
}

// detail tells the positions of a session's lanes apart.
func (l Lane) detail() []byte { return []byte(l.Gateway + "\x00" + l.HostSession) }

// entrySep stands between the parts of a host entry's key. No part holds it.
const entrySep = 0

// EntryKey is the key of a host entry in a lane. Ids hold no NUL. variant tells
// bodies apart that came under one id; it is empty for the first.
func EntryKey(id string, l Lane, variant string) Key {
	v := make([]byte, 0, len(id)+len(l.Gateway)+len(l.HostSession)+len(variant)+3)
	v = append(append(v, id...), entrySep)
	v = append(append(v, l.Gateway...), entrySep)
	v = append(append(v, l.HostSession...), entrySep)
	return Key{Kind: HostEntryKey, Value: append(v, variant...)}
}

// KnownEntry is an event that a host entry's id names, in whatever lane.
type KnownEntry struct {
	ID      string
	Lane    Lane
	Variant string
	// Place is the event's, in the session's line; of an entry that is no message
	// its record's.
	Place int64
	// Inherited is set for what an ancestor of the session knows.
	Inherited bool
	Hash      []byte
}

func entryOfKey(key []byte) (KnownEntry, error) {
	parts := bytes.Split(key, []byte{entrySep})
	if len(parts) != 4 {
		return KnownEntry{}, fmt.Errorf("entry key %q has %d parts", key, len(parts))
	}
	return KnownEntry{
		ID: string(parts[0]), Variant: string(parts[3]),
		Lane: Lane{Gateway: string(parts[1]), HostSession: string(parts[2])},
	}, nil
}

// KnownAnchor is what a turn's anchor names: the turn's event with its body
// (of type TurnCommitted) or the message itself.
type KnownAnchor struct {
	Seq  int64
	Type events.Type
	Hash []byte
	Body []byte
}

// UnnamedMessage is a stored message that no transcript has named.
type UnnamedMessage struct {
	Place     int64
	Inherited bool
	Hash      []byte
	Lane      Lane
}

// UnnamedReset is a reset that no transcript has shown.
type UnnamedReset struct {
	Seq     int64
	Gateway string
	Body    []byte
}

// TreeMessage is a message's facts, under its place for a seq, and the seq of
// the message that it follows.
type TreeMessage struct {
	window.Entry
	Inherited bool
	Parent    int64
}

// KeyRow is the key of an event: of one that was inherited, Seq is its place
// below zero.
type KeyRow struct {
	Key
	Seq  int64
	Hash []byte
}

// LaneTx is a transaction that holds a session's lock, so that what it reads
// stays true until it commits.
type LaneTx struct {
	store       *Store
	q           *db.Queries
	tenant, key string
	openers     map[uuid.UUID]*opener
	// Session and State are the session as it is, Exists tells whether it is at
	// all. Append and Step keep them true.
	Session Session
	State   events.State
	Exists  bool
	// Lane is the lane's row, Known tells whether there is one.
	Lane  LaneRow
	Known bool
}

// InLane runs fn under the session's lock and commits what it did. An error of
// fn undoes everything and is returned as it is.
func (s *Store) InLane(ctx context.Context, tenant, key string, l Lane, fn func(*LaneTx) error) error {
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		t := &LaneTx{store: s, q: q, tenant: tenant, key: key, Lane: LaneRow{Lane: l}}
		if err := t.q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if err := t.read(ctx); err != nil {
			return err
		}
		return fn(t)
	})
	return errUnavailable(err)
}

func (t *LaneTx) read(ctx context.Context) error {
	r, err := t.q.LaneView(ctx, db.LaneViewParams{
		TenantID: t.tenant, SessionKey: t.key, Gateway: t.Lane.Gateway, HostSessionID: t.Lane.HostSession,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		t.State = events.FirstState()
		t.Session = Session{Tenant: t.tenant, Key: t.key, Epoch: 1}
		return nil
	}
	if err != nil {
		return readErr("lane", err)
	}
	if r.Forgets {
		if err := t.store.forgetLocked(ctx, t.q, t.tenant, t.key, r.Session.SID); err != nil {
			return err
		}
		return t.read(ctx)
	}
	t.Session, t.Exists, t.Known = sessionOf(r.Session), true, r.Known
	t.Lane.Cursor, t.Lane.Revision = r.Cursor, r.Revision
	if t.Session.Sealed && t.store.cfg.Vault == nil {
		return vault.ErrClosed
	}
	if t.Lane.Position, err = t.open(t.Session.SID).bytes(ctx, vault.Lane, t.Lane.detail(), r.Position); err != nil {
		return err
	}
	t.State, err = events.DecodeState(r.State)
	return err
}

// stretch is one session's part of the line: its seqs 1 to last stand behind
// the place after.
type stretch struct {
	sid         uuid.UUID
	after, last int64
	inherited   bool
}

// open reads what is encrypted of a session of the line.
func (t *LaneTx) open(sid uuid.UUID) *opener {
	if t.openers == nil {
		t.openers = make(map[uuid.UUID]*opener)
	}
	if t.openers[sid] == nil {
		t.openers[sid] = t.store.openerIn(t.q, t.tenant, sid)
	}
	return t.openers[sid]
}

// line are the session and, before it, the ancestors that still live.
func (t *LaneTx) line() []stretch {
	var out []stretch
	for _, seg := range t.State.Line {
		if seg.SID != (events.SID{}) {
			out = append(out, stretch{sid: uuid.UUID(seg.SID), after: seg.After, last: seg.To - seg.After, inherited: true})
		}
	}
	return append(out, stretch{sid: t.Session.SID, after: t.State.Line.Base(), last: math.MaxInt64})
}

// LaneCursor reads a lane's cursor and revision; ErrUnknownSession without one.
func (s *Store) LaneCursor(ctx context.Context, tenant, key string, l Lane) (cursor []byte, revision string, err error) {
	r, err := s.of(tenant).LaneCursor(ctx, db.LaneCursorParams{
		TenantID: tenant, SessionKey: key, Gateway: l.Gateway, HostSessionID: l.HostSession,
	})
	if err != nil {
		return nil, "", readErr("cursor", err)
	}
	return r.Cursor, r.Revision, nil
}

// EntryID is the host entry that a message is; empty where no transcript has
// named it.
func (s *Store) EntryID(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (string, error) {
	key, err := s.of(tenant).EntryKeyOf(ctx, db.EntryKeyOfParams{TenantID: tenant, SID: sid, Seq: seq})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", readErr("entry", err)
	}
	e, err := entryOfKey(key)
	return e.ID, err
}
