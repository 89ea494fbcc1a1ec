package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

type note struct {
	what, detail string
	derivable    bool
}

// node is a message of the session's own log.
type node struct {
	parent, offset int64
	tokens         int64
	// shift is how much its offset grew because a newer reader counts otherwise.
	shift   int64
	message bool
}

// fold reads one session's log and gathers what differs from it.
type fold struct {
	what What
	read int64

	row    store.Session
	states []store.RecordedState // as they are stored
	at     int                   // the next of them
	linked bool                  // transcripts have a say in this session's paths

	tree   []node // by seq
	newest int64
	// behind is the last message, if no step came after it.
	behind int64
	// cur is the state that holds; sure is false where it could not be told.
	cur  events.State
	sure bool
	// all are the states that hold from each step on, start what a fork begins with.
	all   []store.RecordedState
	start events.State
	known map[int64]events.LiveSummary
	short []events.Superseded // since the last step
	// shorter has the message of each event with a shorter form, both by place.
	shorter map[int64]int64
	// leaf is the newest message of the path; leafSure is false after a step
	// whose path a transcript tells, until the next message.
	leaf, leafOffset int64
	leafSure         bool
	dialect          int
	hostHead         int64
	turned           bool // a turn ended since the last step
	model            string
	unnamed          int // turns since one named it
	recount          map[int64]int64
	moved            map[int64]bool // events whose total is another one now

	// what is to be written
	events    []store.DerivedEvent
	put       []store.RecordedState
	drop      []int64
	newRow    *store.Session
	keys      []store.KeyRow
	newKeys   []store.KeyRow
	debt      *store.Debt // nil: as it is; of epoch 0: nothing is owed
	notes     []note
	untold    int
	derivable int
}

func (f *fold) notef(derivable bool, what, format string, args ...any) {
	if derivable {
		f.derivable++
	}
	// What is lost is always told.
	if len(f.notes) >= mostTold && derivable {
		f.untold++
		return
	}
	f.notes = append(f.notes, note{what, fmt.Sprintf(format, args...), derivable})
}

func (f *fold) changes() bool { return f.derivable > 0 }

func (r *runner) fold(ctx context.Context, v *store.Snapshot) (*fold, error) {
	f := &fold{
		what: r.opts.What, cur: events.FirstState(), sure: true, leafSure: true,
		known: make(map[int64]events.LiveSummary), shorter: make(map[int64]int64), recount: make(map[int64]int64), moved: make(map[int64]bool), tree: make([]node, 1),
	}
	var err error
	if f.row, err = v.Session(ctx); err != nil {
		return nil, err
	}
	if f.states, err = v.States(ctx); err != nil {
		return nil, err
	}
	if f.linked, err = v.Linked(ctx); err != nil {
		return nil, err
	}
	for {
		page, err := v.Log(ctx, f.newest, eventPage, pageBytes)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			f.event(&page[i])
		}
	}
	f.dropStates(f.newest + 1)
	f.checkRow()
	if err := f.checkDebt(ctx, v, r.store); err != nil {
		return nil, err
	}
	if err := f.checkKeys(ctx, v); err != nil {
		return nil, err
	}
	if f.untold > 0 {
		f.notes = append(f.notes, note{"more", fmt.Sprintf("%d differences like these", f.untold), true})
	}
	return f, nil
}

func (f *fold) event(e *store.Logged) {
	f.read++
	if want := f.newest + 1; e.Seq != want {
		f.notef(false, "log", "seq %d follows %d: what was between is lost", e.Seq, f.newest)
	}
	for int64(len(f.tree)) <= e.Seq {
		f.tree = append(f.tree, node{})
	}
	f.dropStates(e.Seq)
	now := store.DerivedEvent{Seq: e.Seq, Epoch: f.cur.Epoch, Offset: e.Offset, ReaderVersion: e.ReaderVersion, Facts: e.Facts}
	wrong := f.what&Facts != 0 && now.Epoch != e.Epoch
	if wrong {
		f.notef(true, "log", "seq %d is of epoch %d, want %d", e.Seq, e.Epoch, now.Epoch)
	}
	switch {
	case !e.Found:
		f.notef(false, "body", "seq %d: its body is lost", e.Seq)
	case !e.Intact:
		f.notef(false, "body", "seq %d: its body is not the one that was stored", e.Seq)
	case e.Type == events.MessageAppended:
		wrong = f.facts(e, &now) || wrong
	case e.Type == events.SummaryCreated:
		f.summary(e)
	case e.Type == events.MessageSuperseded:
		f.superseded(e)
	}
	wrong = f.place(e, &now) || wrong
	if wrong {
		f.events = append(f.events, now)
	}
	if hosts(e) {
		f.hostHead = e.Seq
	}
	if e.Type == events.TurnCompleted {
		f.named(e)
	}
	f.turned = f.turned || e.Type == events.TurnCompleted || e.Type == events.TurnCommitted
	if steps(e) {
		f.step(e)
	}
	f.newest = e.Seq
}

// named keeps the model that the newest turns named.
func (f *fold) named(e *store.Logged) {
	var b events.TurnCompletedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return // told of elsewhere, if it can be
	}
	if f.unnamed++; b.Model != "" {
		f.model, f.unnamed = b.Model, 0
	}
	if f.unnamed >= events.ModelTurns {
		f.model = ""
	}
}

// hosts reports what a host's call writes, as opposed to the engine.
func hosts(e *store.Logged) bool {
	switch e.Type {
	case events.SummaryCreated, events.EpochRotated, events.MessageSuperseded, events.Forked,
		events.SubagentPrepared, events.SubagentEnded, events.AncestorErased:
		return false
	}
	return true
}

func steps(e *store.Logged) bool {
	switch e.Type {
	case events.LeafMoved, events.SessionReset, events.EpochRotated, events.AncestorErased:
		return true
	case events.Forked:
		return e.Seq == 1
	}
	return false
}

// place gives an event its place on the path: the running total of tokens there.
func (f *fold) place(e *store.Logged, now *store.DerivedEvent) (wrong bool) {
	if e.Type != events.MessageAppended {
		if f.what&Facts != 0 && f.behind > 0 && f.leafSure && e.Offset != f.leafOffset {
			f.notef(true, "offset", "seq %d is at %d tokens, want %d", e.Seq, e.Offset, f.leafOffset)
			now.Offset, wrong = f.leafOffset, true
			f.moved[e.Seq] = true
		}
		return wrong
	}
	n := node{parent: e.ParentSeq, tokens: int64(now.Facts.Tokens), message: true}
	var above node
	if e.ParentSeq > 0 && e.ParentSeq < e.Seq && f.tree[e.ParentSeq].message {
		above = f.tree[e.ParentSeq]
	}
	n.shift = above.shift + f.recount[e.Seq]
	switch {
	case f.behind > 0 && e.ParentSeq == f.behind,
		f.leafSure && !f.linked && e.ParentSeq == f.leaf:
		n.offset = f.leafOffset + n.tokens
	case above.message && e.Offset == above.offset+n.tokens:
		n.offset = e.Offset
	default:
		// Where a transcript put it: what it was put under may be an ancestor's.
		n.offset = e.Offset + n.shift
	}
	if f.what&Facts == 0 {
		n.offset = e.Offset
	}
	if n.offset != e.Offset {
		f.notef(true, "offset", "seq %d is at %d tokens, want %d", e.Seq, e.Offset, n.offset)
		now.Offset, wrong = n.offset, true
		f.moved[e.Seq] = true
	}
	f.tree[e.Seq] = n
	f.leaf, f.leafOffset, f.leafSure, f.behind = e.Seq, n.offset, true, e.Seq
	return wrong
}

// dropStates leaves behind the stored states before a seq: no step began them.
func (f *fold) dropStates(before int64) {
	for ; f.at < len(f.states) && f.states[f.at].AsOf < before; f.at++ {
		if f.what&States != 0 {
			f.notef(true, "state", "as of seq %d, where no epoch begins", f.states[f.at].AsOf)
			f.drop = append(f.drop, f.states[f.at].AsOf)
		}
	}
}

// asOf is the state that held when the head was seq.
func (f *fold) asOf(seq int64) events.State {
	i, ok := slices.BinarySearchFunc(f.all, seq, func(st store.RecordedState, seq int64) int { return int(st.AsOf - seq) })
	if ok {
		return f.all[i].State
	}
	if i == 0 {
		return events.FirstState()
	}
	return f.all[i-1].State
}
