package adopt

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

// Turn is a committed turn on its way into the log.
type Turn struct {
	Params contextengine.CommitTurnParams
	// Events are its messages, Chain is the hash of their sequence.
	Events []store.NewEvent
	Chain  [32]byte
	// End tells of the turn's completion.
	End store.NewEvent
}

// Write makes the item that stores a turn of which nothing is known: its messages,
// then its marks.
func (t *Turn) Write(it *store.Item) error { return t.fill(it, t.Events, nil, t.anchor()) }

// anchor is what the turn is known by in a transcript: the id of its admission,
// else the key in its first message, else the response of its last one. It is
// nil for a turn without any.
func (t *Turn) anchor() []byte {
	if v := anchor(byEntry, anchorOf(t.Params.Admission)); v != nil {
		return v
	}
	if m, err := message.Read(t.Params.Messages[0]); err == nil && m.Role == message.User {
		if v := anchor(byKey, m.EntryKey); v != nil {
			return v
		}
	}
	if m, err := message.Read(t.Params.Messages[len(t.Params.Messages)-1]); err == nil && m.Role == message.Assistant {
		return anchor(byResponse, m.ResponseID)
	}
	return nil
}

// fill makes the item that stores the turn: its new messages, then its marks.
// known are the seqs of those that are in the log.
func (t *Turn) fill(it *store.Item, fresh []store.NewEvent, known []int64, anchor []byte) error {
	body, err := json.Marshal(events.TurnCommittedBody{
		AdvancementKey: t.Params.AdvancementKey, Count: len(fresh), Known: known, Admission: t.Params.Admission, Terminal: t.Params.Terminal,
	})
	if err != nil {
		return &contextengine.InvalidError{Field: "admission", Reason: err.Error()}
	}
	mark := store.NewEvent{
		Type: events.TurnCommitted, Body: body, Hash: t.Chain,
		Keys: []store.Key{{Kind: store.TurnKey, Value: []byte(t.Params.AdvancementKey)}},
	}
	if anchor != nil {
		mark.Keys = append(mark.Keys, store.Key{Kind: store.AnchorKey, Value: anchor})
	}
	it.Gate = len(fresh) + 1
	it.Events = append(slices.Clip(fresh), mark, t.End)
	return nil
}

// Meet stores a turn of which some key is known already: its own, which makes
// it a duplicate or, with other messages, the conflict, or its anchor, which says
// that a transcript brought some or all of it before.
func (t *Turn) Meet(ctx context.Context, tx *store.LaneTx, it *store.Item, conflict error) (store.Appended, error) {
	key := []byte(t.Params.AdvancementKey)
	turns, err := tx.Anchors(ctx, store.TurnKey, [][]byte{key})
	if err != nil {
		return store.Appended{}, err
	}
	if k, ok := turns[string(key)]; ok {
		if !bytes.Equal(k.Hash, t.Chain[:]) {
			return store.Appended{}, conflict
		}
		return store.Appended{SID: tx.Session.SID, Head: tx.Session.Head, Epoch: tx.Session.Epoch, Duplicate: true}, nil
	}
	seqs, err := t.met(ctx, tx)
	if err != nil {
		return store.Appended{}, err
	}
	var fresh []store.NewEvent
	var known []int64
	for i, seq := range seqs {
		if seq == 0 {
			fresh = append(fresh, t.Events[i])
		} else {
			known = append(known, seq)
		}
	}
	if err := t.fill(it, fresh, known, nil); err != nil {
		return store.Appended{}, err
	}
	out, err := tx.Append(ctx, it)
	if err != nil {
		return out, err
	}
	out.Duplicate = len(fresh) == 0
	return out, nil
}

// met finds the turn's messages in the log: those at its ends by what names
// them, the others in order and by equal content. A 0 is not there.
func (t *Turn) met(ctx context.Context, tx *store.LaneTx) ([]int64, error) {
	out := make([]int64, len(t.Events))
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
		turn, err := committedOf(events.Event{Seq: known.Seq, Body: known.Body})
		if err != nil {
			return nil, err
		}
		start = turn.first
	}
	at := 0
	if bytes.HasPrefix(a, []byte(byResponse)) {
		at = len(t.Events) - 1
	}
	rows, err := tx.MessagesFrom(ctx, max(start-int64(2*at), 1), 4*len(t.Events)+200)
	if err != nil {
		return nil, err
	}
	place := slices.IndexFunc(rows, func(r store.UnnamedMessage) bool { return r.Place == start })
	if place < 0 || !named && !t.Events[at].SamePayload(rows[place].Hash) {
		return out, nil
	}
	out[at] = start
	mine := func(r store.UnnamedMessage) bool {
		return r.Lane.Gateway == rows[place].Lane.Gateway && r.Lane.HostSession == rows[place].Lane.HostSession
	}
	from := place + 1
	for i := at + 1; i < len(t.Events); i++ {
		for j := from; j < len(rows); j++ {
			if mine(rows[j]) && t.Events[i].SamePayload(rows[j].Hash) {
				out[i], from = rows[j].Place, j+1
				break
			}
		}
	}
	to := place - 1
	for i := at - 1; i >= 0; i-- {
		for j := to; j >= 0; j-- {
			if mine(rows[j]) && t.Events[i].SamePayload(rows[j].Hash) {
				out[i], to = rows[j].Place, j-1
				break
			}
		}
	}
	return out, t.metTerminal(ctx, tx, out)
}

// metTerminal names the last message by the terminal anchor's entry id.
func (t *Turn) metTerminal(ctx context.Context, tx *store.LaneTx, out []int64) error {
	id := anchorOf(t.Params.Terminal)
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
