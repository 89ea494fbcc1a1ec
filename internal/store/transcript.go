package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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

// Entries are the events that any of the ids names, the session's own first.
func (t *LaneTx) Entries(ctx context.Context, ids []string) ([]KnownEntry, error) {
	if !t.Exists || len(ids) == 0 {
		return nil, nil
	}
	p := db.KeysBetweenParams{TenantID: t.tenant, Kind: int16(HostEntryKey)}
	for _, id := range ids {
		p.First = append(p.First, append([]byte(id), entrySep))
		p.Past = append(p.Past, append([]byte(id), entrySep+1))
	}
	var out []KnownEntry
	for _, s := range slices.Backward(t.line()) {
		p.SID = s.sid
		rows, err := t.q.KeysBetween(ctx, p)
		if err != nil {
			return nil, readErr("entries", err)
		}
		for _, r := range rows {
			if r.Seq > s.last {
				continue // the ancestor had it after the fork
			}
			place := s.after + r.Seq
			if r.Seq < 0 {
				place = -r.Seq
			}
			k, err := entryOfKey(r.Key)
			if err != nil {
				return nil, err
			}
			k.Place, k.Inherited = place, s.inherited
			if k.Hash, err = t.open(s.sid).hash(ctx, r.PayloadHash); err != nil {
				return nil, err
			}
			if sealer, err := t.open(s.sid).perhaps(ctx); err != nil {
				return nil, err
			} else if sealer != nil {
				k.Variant = sealer.OpenShort(k.Variant)
			}
			out = append(out, k)
		}
	}
	return out, nil
}

// Anchors are what keys of one kind name.
func (t *LaneTx) Anchors(ctx context.Context, kind KeyKind, keys [][]byte) (map[string]KnownAnchor, error) {
	out := make(map[string]KnownAnchor)
	if !t.Exists || len(keys) == 0 {
		return out, nil
	}
	p := db.KeysBetweenParams{TenantID: t.tenant, SID: t.Session.SID, Kind: int16(kind)}
	for _, k := range keys {
		p.First = append(p.First, k)
		p.Past = append(p.Past, append(bytes.Clone(k), 0))
	}
	rows, err := t.q.KeysBetween(ctx, p)
	if err != nil {
		return nil, readErr("anchors", err)
	}
	open := t.open(t.Session.SID)
	for _, r := range rows {
		if r.PayloadHash, err = open.hash(ctx, r.PayloadHash); err != nil {
			return nil, err
		}
		// Of others the body is not read.
		if events.Type(r.Type) == events.TurnCommitted {
			if r.Body, err = open.event(ctx, r.Seq, r.Body); err != nil {
				return nil, err
			}
		}
		out[string(r.Key)] = KnownAnchor{Seq: r.Seq, Type: events.Type(r.Type), Hash: r.PayloadHash, Body: r.Body}
	}
	return out, nil
}

// Unnamed are messages of the lane's gateway, or of none, behind a place that no
// transcript has named, in order. more tells that there may be others.
func (t *LaneTx) Unnamed(ctx context.Context, after int64, limit int) (out []UnnamedMessage, more bool, err error) {
	if !t.Exists {
		return nil, false, nil
	}
	for _, st := range t.line() {
		if st.last < math.MaxInt64 && after >= st.after+st.last {
			continue
		}
		rows, err := t.q.UnnamedMessages(ctx, db.UnnamedMessagesParams{
			TenantID: t.tenant, SID: st.sid, After: max(after-st.after, 0), Gateway: t.Lane.Gateway, MaxRows: int32(limit - len(out)),
		})
		if err != nil {
			return nil, false, readErr("messages", err)
		}
		for _, r := range rows {
			if r.Seq <= st.last {
				if r.PayloadHash, err = t.open(st.sid).hash(ctx, r.PayloadHash); err != nil {
					return nil, false, err
				}
				out = append(out, UnnamedMessage{
					Place: st.after + r.Seq, Inherited: st.inherited, Hash: r.PayloadHash, Lane: Lane{r.Gateway, r.HostSessionID},
				})
			}
		}
		if len(out) == limit {
			return out, true, nil
		}
	}
	return out, false, nil
}

// MessagesFrom are the session's own messages from a seq on, under their seqs.
func (t *LaneTx) MessagesFrom(ctx context.Context, first int64, limit int) ([]UnnamedMessage, error) {
	rows, err := t.q.MessagesFrom(ctx, db.MessagesFromParams{TenantID: t.tenant, SID: t.Session.SID, First: first, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("messages", err)
	}
	out := make([]UnnamedMessage, len(rows))
	open := t.open(t.Session.SID)
	for i, r := range rows {
		if r.PayloadHash, err = open.hash(ctx, r.PayloadHash); err != nil {
			return nil, err
		}
		out[i] = UnnamedMessage{Place: r.Seq, Hash: r.PayloadHash, Lane: Lane{r.Gateway, r.HostSessionID}}
	}
	return out, nil
}

// Turns are the committed turns behind a place, under their places.
func (t *LaneTx) Turns(ctx context.Context, after int64, limit int) ([]events.Event, error) {
	if !t.Exists {
		return nil, nil
	}
	var out []events.Event
	for _, st := range t.line() {
		if st.last < math.MaxInt64 && after >= st.after+st.last {
			continue
		}
		rows, err := t.q.TurnsAfter(ctx, db.TurnsAfterParams{
			TenantID: t.tenant, SID: st.sid, After: max(after-st.after, 0), MaxRows: int32(limit),
		})
		if err != nil {
			return nil, readErr("turns", err)
		}
		for _, r := range rows {
			if r.Seq <= st.last {
				if r.Body, err = t.open(st.sid).event(ctx, r.Seq, r.Body); err != nil {
					return nil, err
				}
				out = append(out, events.Event{Seq: st.after + r.Seq, Type: events.TurnCommitted, Body: r.Body})
			}
		}
	}
	return out, nil
}

// Bodies reads the bytes of events.
func (t *LaneTx) Bodies(ctx context.Context, seqs []int64) (map[int64][]byte, error) {
	rows, err := t.q.Bodies(ctx, db.BodiesParams{TenantID: t.tenant, SID: t.Session.SID, Seqs: seqs})
	if err != nil {
		return nil, readErr("bodies", err)
	}
	out := make(map[int64][]byte, len(rows))
	open := t.open(t.Session.SID)
	for _, r := range rows {
		if out[r.Seq], err = open.event(ctx, r.Seq, r.Body); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// StateAsOf reads the state that held when the head was seq.
func (t *LaneTx) StateAsOf(ctx context.Context, seq int64) (events.State, error) {
	r, err := t.q.StateAsOf(ctx, db.StateAsOfParams{TenantID: t.tenant, SID: t.Session.SID, AsOf: seq})
	if errors.Is(err, pgx.ErrNoRows) {
		return events.FirstState(), nil
	}
	if err != nil {
		return events.State{}, readErr("state", err)
	}
	return events.DecodeState(r.State)
}

// Resets are the places of the session's own resets, in order.
func (t *LaneTx) Resets(ctx context.Context) ([]int64, error) {
	if !t.Exists {
		return nil, nil
	}
	rows, err := t.q.EventsOfType(ctx, db.EventsOfTypeParams{
		TenantID: t.tenant, SID: t.Session.SID, Type: int16(events.SessionReset), Upto: t.Session.Head, MaxRows: math.MaxInt32,
	})
	if err != nil {
		return nil, readErr("resets", err)
	}
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = t.State.Line.Place(r.Seq)
	}
	return out, nil
}

// UnnamedResets are the resets that no transcript has shown.
func (t *LaneTx) UnnamedResets(ctx context.Context) ([]UnnamedReset, error) {
	if !t.Exists {
		return nil, nil
	}
	rows, err := t.q.UnnamedResets(ctx, db.UnnamedResetsParams{TenantID: t.tenant, SID: t.Session.SID})
	if err != nil {
		return nil, readErr("resets", err)
	}
	out := make([]UnnamedReset, len(rows))
	open := t.open(t.Session.SID)
	for i, r := range rows {
		if r.Body, err = open.event(ctx, r.Seq, r.Body); err != nil {
			return nil, err
		}
		out[i] = UnnamedReset{Seq: r.Seq, Gateway: r.Gateway, Body: r.Body}
	}
	return out, nil
}

// linksPage is how many linking events are read at a time.
const linksPage = 1000

// Links reads every event that linked entries, in order.
func (t *LaneTx) Links(ctx context.Context) ([]events.Event, error) {
	var out []events.Event
	for after := int64(0); t.Exists; {
		rows, err := t.q.EventsOfType(ctx, db.EventsOfTypeParams{
			TenantID: t.tenant, SID: t.Session.SID, Type: int16(events.IdentityLinked),
			After: after, Upto: t.Session.Head, MaxRows: linksPage,
		})
		if err != nil {
			return nil, readErr("links", err)
		}
		open := t.open(t.Session.SID)
		for _, r := range rows {
			if r.Body, err = open.event(ctx, r.Seq, r.Body); err != nil {
				return nil, err
			}
			out = append(out, events.Event{Seq: r.Seq, Type: events.Type(r.Type), Body: r.Body})
			after = r.Seq
		}
		if len(rows) < linksPage {
			break
		}
	}
	return out, nil
}

// Tree reads the facts of all messages of the line, in order.
func (t *LaneTx) Tree(ctx context.Context) ([]TreeMessage, error) {
	if !t.Exists {
		return nil, nil
	}
	var out []TreeMessage
	for _, st := range t.line() {
		rows, err := t.q.MessageSteps(ctx, db.MessageStepsParams{TenantID: t.tenant, SID: st.sid, Upto: st.last})
		if err != nil {
			return nil, readErr("messages", err)
		}
		for _, r := range rows {
			m := TreeMessage{Inherited: st.inherited, Parent: r.ParentSeq}
			if m.Entry, err = entryOf(st.after+r.Seq, r.Role, r.Tokens, r.Flags, r.Links, r.OffsetTokens); err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// Append appends an item of this session, whose gates hold as in any append.
func (t *LaneTx) Append(ctx context.Context, it *Item) (Appended, error) {
	it.Tenant, it.SessionKey = t.tenant, t.key
	it, err := t.store.sealTo(ctx, t.Session, t.Exists, it)
	if err != nil {
		return Appended{}, err
	}
	outs, err := run(ctx, t.q, t.store.params([]*Item{it}, false))
	if err != nil {
		return Appended{}, fmt.Errorf("append: %w", err)
	}
	a, err := outs[0].result(it)
	if err != nil {
		return Appended{}, err
	}
	return a, t.again(ctx)
}

// again reads the session anew after something was written.
func (t *LaneTx) again(ctx context.Context) error {
	r, err := t.q.SessionWithState(ctx, db.SessionWithStateParams{TenantID: t.tenant, SessionKey: t.key})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nothing was appended
	}
	if err != nil {
		return readErr("session", err)
	}
	t.Session, t.Exists = sessionOf(r.Session), true
	t.State, err = events.DecodeState(r.State)
	return err
}

// Reparent puts messages that this transaction appended under other parents.
func (t *LaneTx) Reparent(ctx context.Context, seqs, parents, totals []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	err := t.q.Reparent(ctx, db.ReparentParams{
		TenantID: t.tenant, SID: t.Session.SID, Seqs: seqs, Parents: parents, Totals: totals,
	})
	if err != nil {
		return fmt.Errorf("parents: %w", err)
	}
	return nil
}

// Step commits an epoch step.
func (t *LaneTx) Step(ctx context.Context, step EpochStep) (Stepped, error) {
	out, err := t.store.commitStep(ctx, t.q, t.Session, step)
	if err != nil {
		return Stepped{}, err
	}
	return out, t.again(ctx)
}

// PutKeys adds keys to events; one that is there stays as it is.
func (t *LaneTx) PutKeys(ctx context.Context, keys []KeyRow) error {
	if len(keys) == 0 {
		return nil
	}
	p := db.PutKeysParams{TenantID: t.tenant, SID: t.Session.SID}
	sealer, err := t.sealer(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if sealer != nil {
			k.Key, k.Hash = sealKey(sealer, k.Key), sealer.SealHash(k.Hash)
		}
		p.Kinds = append(p.Kinds, int16(k.Kind))
		p.Keys = append(p.Keys, k.Value)
		p.Seqs = append(p.Seqs, k.Seq)
		p.Hashes = append(p.Hashes, k.Hash)
	}
	if err := t.q.PutKeys(ctx, p); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

// sealer is the session's key; nil where it is not encrypted.
func (t *LaneTx) sealer(ctx context.Context) (*vault.Sealer, error) {
	if !t.Session.Sealed {
		return nil, nil
	}
	return t.open(t.Session.SID).key(ctx)
}

// SaveLane stores a lane's row.
func (t *LaneTx) SaveLane(ctx context.Context, l LaneRow) error {
	position := append([]byte{}, l.Position...)
	sealer, err := t.sealer(ctx)
	if err != nil {
		return err
	}
	if sealer != nil {
		position = sealer.Seal(vault.Lane, l.detail(), position)
	}
	err = t.q.SaveLane(ctx, db.SaveLaneParams{
		TenantID: t.tenant, SID: t.Session.SID, Gateway: l.Gateway, HostSessionID: l.HostSession,
		Cursor: l.Cursor, Revision: l.Revision, Position: position,
	})
	if err != nil {
		return fmt.Errorf("lane: %w", err)
	}
	return nil
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
