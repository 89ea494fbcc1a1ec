package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// The forms of an anchor: a host entry's id, a user's idempotency key, an
// assistant's response id.
const (
	byEntry    = "entry\x00"
	byKey      = "key\x00"
	byResponse = "response\x00"
)

func anchor(form, id string) []byte {
	if id == "" || len(id) > maxKeyBytes {
		return nil
	}
	return []byte(form + id)
}

// anchorKeys are what a committed turn may know this entry by.
func anchorKeys(entryID string, m message.Message) []store.Key {
	var out []store.Key
	add := func(form, id string) {
		if v := anchor(form, id); v != nil {
			out = append(out, store.Key{Kind: store.AnchorKey, Value: v})
		}
	}
	switch m.Role {
	case message.User:
		add(byEntry, entryID)
		add(byKey, m.EntryKey)
	case message.Assistant:
		add(byResponse, m.ResponseID)
	}
	return out
}

// committing is a turn on its way into the log.
type committing struct {
	p     contextengine.CommitTurnParams
	evs   []store.NewEvent
	chain link
	end   store.NewEvent
}

// anchor is what the turn is known by in a transcript: the id of its admission,
// else the key in its first message, else the response of its last one. It is
// nil for a turn without any.
func (t *committing) anchor() []byte {
	if v := anchor(byEntry, anchorOf(t.p.Admission)); v != nil {
		return v
	}
	if m, err := message.Read(t.p.Messages[0]); err == nil && m.Role == message.User {
		if v := anchor(byKey, m.EntryKey); v != nil {
			return v
		}
	}
	if m, err := message.Read(t.p.Messages[len(t.p.Messages)-1]); err == nil && m.Role == message.Assistant {
		return anchor(byResponse, m.ResponseID)
	}
	return nil
}

// fill makes the item that stores the turn: its new messages, then its marks.
// known are the seqs of those that are in the log.
func (t *committing) fill(it *store.Item, fresh []store.NewEvent, known []int64, anchor []byte) error {
	body, err := json.Marshal(events.TurnCommittedBody{
		AdvancementKey: t.p.AdvancementKey, Count: len(fresh), Known: known, Admission: t.p.Admission, Terminal: t.p.Terminal,
	})
	if err != nil {
		return &contextengine.InvalidError{Field: "admission", Reason: err.Error()}
	}
	mark := store.NewEvent{
		Type: events.TurnCommitted, Body: body, Hash: t.chain,
		Keys: []store.Key{{Kind: store.TurnKey, Value: []byte(t.p.AdvancementKey)}},
	}
	if anchor != nil {
		mark.Keys = append(mark.Keys, store.Key{Kind: store.AnchorKey, Value: anchor})
	}
	it.Gate = len(fresh) + 1
	it.Events = append(slices.Clip(fresh), mark, t.end)
	return nil
}

// commitMet stores a turn of which some key is known already: the turn's own,
// which makes it a duplicate or a conflict, or its anchor, which says that a
// transcript brought some or all of it before.
func (w *writer) commitMet(ctx context.Context, t *committing, it *store.Item, conflict error) (store.Appended, error) {
	var out store.Appended
	lane := store.Lane{Gateway: t.p.GatewayID, HostSession: t.p.SessionID}
	err := w.cfg.Log.InLane(ctx, t.p.Tenant, t.p.SessionKey, lane, func(tx *store.LaneTx) error {
		key := []byte(t.p.AdvancementKey)
		turns, err := tx.Anchors(ctx, store.TurnKey, [][]byte{key})
		if err != nil {
			return err
		}
		if k, ok := turns[string(key)]; ok {
			if !bytes.Equal(k.Hash, t.chain[:]) {
				return conflict
			}
			out = store.Appended{SID: tx.Session.SID, Head: tx.Session.Head, Epoch: tx.Session.Epoch, Duplicate: true}
			return nil
		}
		seqs, err := t.met(ctx, tx)
		if err != nil {
			return err
		}
		var fresh []store.NewEvent
		var known []int64
		for i, seq := range seqs {
			if seq == 0 {
				fresh = append(fresh, t.evs[i])
			} else {
				known = append(known, seq)
			}
		}
		if err := t.fill(it, fresh, known, nil); err != nil {
			return err
		}
		if out, err = tx.Append(ctx, it); err != nil {
			return err
		}
		out.Duplicate = len(fresh) == 0
		return nil
	})
	return out, err
}

// met finds the turn's messages in the log: those at its ends by what names
// them, the others in order and by equal content. A 0 is not there.
func (t *committing) met(ctx context.Context, tx *store.LaneTx) ([]int64, error) {
	out := make([]int64, len(t.evs))
	a := t.anchor()
	if a == nil {
		return out, nil
	}
	anchors, err := tx.Anchors(ctx, store.AnchorKey, [][]byte{a})
	if err != nil {
		return nil, err
	}
	known, ok := anchors[string(a)]
	named := bytes.HasPrefix(a, []byte(byEntry))
	if !ok || known.Type != events.MessageAppended && !named {
		return out, nil // another turn with the same words is another turn
	}
	start := known.Seq
	if known.Type != events.MessageAppended {
		turn, err := turnOf(events.Event{Seq: known.Seq, Body: known.Body})
		if err != nil {
			return nil, err
		}
		start = turn.first
	}
	at := 0
	if bytes.HasPrefix(a, []byte(byResponse)) {
		at = len(t.evs) - 1
	}
	rows, err := tx.MessagesFrom(ctx, max(start-int64(2*at), 1), 4*len(t.evs)+200)
	if err != nil {
		return nil, err
	}
	place := slices.IndexFunc(rows, func(r store.UnnamedMessage) bool { return r.Place == start })
	if place < 0 || !named && !samePayload(rows[place].Hash, &t.evs[at]) {
		return out, nil
	}
	out[at] = start
	mine := func(r store.UnnamedMessage) bool {
		return r.Lane.Gateway == rows[place].Lane.Gateway && r.Lane.HostSession == rows[place].Lane.HostSession
	}
	from := place + 1
	for i := at + 1; i < len(t.evs); i++ {
		for j := from; j < len(rows); j++ {
			if mine(rows[j]) && samePayload(rows[j].Hash, &t.evs[i]) {
				out[i], from = rows[j].Place, j+1
				break
			}
		}
	}
	to := place - 1
	for i := at - 1; i >= 0; i-- {
		for j := to; j >= 0; j-- {
			if mine(rows[j]) && samePayload(rows[j].Hash, &t.evs[i]) {
				out[i], to = rows[j].Place, j-1
				break
			}
		}
	}
	return out, t.metTerminal(ctx, tx, out)
}

// metTerminal names the last message by the terminal anchor's entry id.
func (t *committing) metTerminal(ctx context.Context, tx *store.LaneTx, out []int64) error {
	id := anchorOf(t.p.Terminal)
	if last := len(out) - 1; id != "" && out[last] == 0 {
		known, err := tx.Entries(ctx, []string{id})
		if err != nil {
			return err
		}
		for _, k := range known {
			if !k.Inherited {
				out[last] = tx.State.Line.Seq(k.Place)
				break
			}
		}
	}
	return nil
}
