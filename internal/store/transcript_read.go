package store

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

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
