package rebuild

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

var (
	errBefore     = errors.New("the state before it is not known either")
	errBody       = errors.New("its event cannot be read")
	errTranscript = errors.New("a transcript's tree told the path")
	errInherited  = errors.New("it reads what was inherited")
)

// derive is the state that a step leads to from the one before, by the rules of
// the step. The factors of further models stay as they were, since no event tells them.
// That a compaction was forced is told by none either, and is forgotten.
func (f *fold) derive(e *store.Logged) (events.State, error) {
	next := f.cur
	next.ForcedAt = 0
	switch {
	case e.Type == events.Forked:
		return next, errInherited
	case !f.sure:
		return next, errBefore
	case !e.Found || !e.Intact:
		return next, errBody
	}
	switch e.Type {
	case events.EpochRotated:
		return f.rotated(e, next)
	case events.SessionReset:
		return f.reset(e, next)
	case events.LeafMoved:
		return f.rewound(e, next)
	}
	var b events.AncestorErasedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return next, errBody
	}
	// Where the states before were made to forget it already, nothing is left.
	next, _ = next.WithoutAncestor(b.SID)
	next.Base, next.Cause = 0, events.CauseAncestor
	return next, nil
}

func (f *fold) rotated(e *store.Logged, next events.State) (events.State, error) {
	var b events.EpochRotatedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return next, errBody
	}
	before := next.Superseded
	next.Live = nil
	for _, seq := range b.Live {
		l, ok := f.known[seq]
		if !ok {
			return next, fmt.Errorf("summary %d is lost", seq)
		}
		next.Live = append(next.Live, l)
	}
	next.Cause, next.FactorMilli = b.Cause, b.FactorMilli
	switch b.Cause {
	case events.CauseCompaction:
		next.Base = b.Base
		next.Superseded = events.ShownShorter(next.Path, next.Live, before)
	case events.CauseUndo:
		base, err := f.ofEpoch(b.Base)
		if err != nil {
			return next, err
		}
		next.Base = base.Base
		next.Superseded = events.ShownShorter(next.Path, next.Live, base.Superseded, before)
	case events.CauseRewrite:
		next.Superseded = events.ShownShorter(next.Path, next.Live, before, f.short)
	default:
		return next, fmt.Errorf("its cause is %q", b.Cause)
	}
	return next, nil
}

func (f *fold) ofEpoch(epoch int64) (events.State, error) {
	for i := range f.all {
		if f.all[i].Epoch == epoch {
			return f.all[i].State, nil
		}
	}
	if epoch == 1 {
		return events.FirstState(), nil
	}
	return events.State{}, errBefore
}

func (f *fold) reset(e *store.Logged, next events.State) (events.State, error) {
	var b events.SessionResetBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return next, errBody
	}
	if f.linked {
		return next, errTranscript
	}
	next.Base, next.Cause = 0, events.CauseReset
	if b.KeepFrom == 0 {
		next.Live, next.Superseded = nil, nil
		next.Path, next.FloorOffset = []events.Range{{From: next.Line.Place(e.Seq) + 1, To: events.Open}}, f.leafOffset
		return next, nil
	}
	first := next.Line.Place(b.KeepFrom)
	kept, err := f.newestOnPath(first - 1)
	if err != nil {
		return next, err
	}
	var path []events.Range
	for _, r := range next.Path {
		if r.To >= first {
			path = append(path, events.Range{From: max(r.From, first), To: r.To})
		}
	}
	if kept > 0 {
		next.FloorOffset = max(f.tree[kept].offset, next.FloorOffset)
	}
	next.Path = path
	next.Live = events.KeepOnPath(next.Live, path)
	next.Superseded = events.ShownShorter(path, next.Live, next.Superseded)
	return next, nil
}

// newestOnPath is the newest own message of the path at or before a place; 0 for
// none.
func (f *fold) newestOnPath(upto int64) (int64, error) {
	base := f.cur.Line.Base()
	for _, r := range slices.Backward(f.cur.Path) {
		for place := min(upto, r.To, base+int64(len(f.tree))-1); place >= r.From; place-- {
			if place <= base {
				return 0, errInherited
			}
			if f.tree[place-base].message {
				return place - base, nil
			}
		}
	}
	return 0, nil
}

func (f *fold) rewound(e *store.Logged, next events.State) (events.State, error) {
	var b events.LeafMovedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return next, errBody
	}
	if b.Reason == "transcript" {
		return next, errTranscript
	}
	line := next.Line
	var leaf int64 // its place
	switch {
	case b.To == 0:
	case len(line) > 0 && b.To == 1:
		leaf = line.Base()
	case b.To >= int64(len(f.tree)) || !f.tree[b.To].message:
		return next, fmt.Errorf("message %d is lost", b.To)
	default:
		leaf = line.Place(b.To)
	}
	older := f.asOf(b.To)
	path, floor := next.Path, next.FloorOffset
	switch {
	case leaf == 0 || next.OnPath(leaf):
	case older.OnPath(leaf): // what a reset had hid then stays hidden
		path, floor = older.Path, older.FloorOffset
	case b.To == 1 && len(line) > 0:
		path, floor = f.inherited(nil)
	default:
		var err error
		if path, floor, err = f.branch(b.To); err != nil {
			return next, err
		}
	}
	next.Path, next.FloorOffset = events.CutPath(path, leaf, line.Place(e.Seq)+1), floor
	next.Live = events.MostCovering(events.KeepOnPath(next.Live, next.Path), events.KeepOnPath(older.Live, next.Path))
	next.Superseded = events.ShownShorter(next.Path, next.Live, older.Superseded, next.Superseded)
	next.Base, next.Cause = 0, events.CauseRewind
	return next, nil
}

// inherited is the branch of a fork that goes on with own ranges.
func (f *fold) inherited(own []events.Range) ([]events.Range, int64) {
	whole := events.CutPath(f.start.Path, f.start.Line.Base(), 0)
	return append(whole[:len(whole)-1], own...), f.start.FloorOffset
}

// branch walks from a message to its root.
func (f *fold) branch(leaf int64) (path []events.Range, floor int64, err error) {
	line := f.cur.Line
	var from, to int64
	for seq := leaf; ; {
		n := f.tree[seq]
		if !n.message {
			return nil, 0, fmt.Errorf("message %d is lost", seq)
		}
		// A run goes on as long as no other message lies between.
		if from > 0 && f.between(seq, from) {
			path, from = append(path, events.Range{From: line.Place(from), To: line.Place(to)}), 0
		}
		if from == 0 {
			to = seq
		}
		from = seq
		root := n.parent == 0
		if root || len(line) > 0 && n.parent == 1 {
			path = append(path, events.Range{From: line.Place(from), To: line.Place(to)})
			slices.Reverse(path)
			if root {
				return path, n.offset - n.tokens, nil
			}
			path, floor = f.inherited(path)
			return path, floor, nil
		}
		if n.parent >= seq {
			return nil, 0, fmt.Errorf("message %d follows %d", seq, n.parent)
		}
		seq = n.parent
	}
}

func (f *fold) between(a, b int64) bool {
	for seq := a + 1; seq < b; seq++ {
		if f.tree[seq].message {
			return true
		}
	}
	return false
}
