package rebuild

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// step takes the state that an event began: the stored one where it agrees with
// the event, else one derived from the state before.
func (f *fold) step(e *store.Logged) {
	stored, has := store.RecordedState{}, false
	if f.at < len(f.states) && f.states[f.at].AsOf == e.Seq {
		stored, has = f.states[f.at], true
		f.at++
	}
	want := f.cur.Epoch + 1
	if e.Type == events.Forked {
		want = 1
	}
	why := "there is none"
	if has {
		why = f.disagrees(e, stored, want)
	}
	before := f.cur
	if why == "" {
		f.cur, f.sure = f.recounted(stored.State), true
		if f.cur.FloorOffset != stored.FloorOffset && f.what&States != 0 {
			f.notef(true, "state", "as of seq %d counts as an older reader did", e.Seq)
			f.put = append(f.put, store.RecordedState{AsOf: e.Seq, State: f.cur})
		}
	} else {
		next, err := f.derive(e)
		next.Epoch = want
		f.cur, f.sure = next, err == nil
		switch {
		case f.what&States == 0:
		case err != nil:
			f.notef(false, "state", "as of seq %d: %s; the log does not tell it: %v", e.Seq, why, err)
		default:
			f.notef(true, "state", "as of seq %d: %s", e.Seq, why)
			f.put = append(f.put, store.RecordedState{AsOf: e.Seq, State: next})
		}
	}
	if e.Type == events.Forked {
		f.start = f.cur
		for _, l := range f.cur.Live {
			f.known[l.Seq] = l
		}
		if n := len(f.cur.Line); n > 0 {
			f.leaf, f.leafOffset = 1, f.cur.Line[n-1].Offset
		} else {
			f.leafSure = false
		}
	}
	f.all = append(f.all, store.RecordedState{AsOf: e.Seq, State: f.cur})
	f.moveLeaf(e, before)
	f.behind, f.short, f.turned = 0, nil, false
}

// disagrees says how a stored state contradicts the event that began it; empty
// where it does not.
func (f *fold) disagrees(e *store.Logged, st store.RecordedState, epoch int64) string {
	switch {
	case st.Err != nil:
		return st.Err.Error()
	case st.Epoch != epoch:
		return fmt.Sprintf("it is of epoch %d, want %d", st.Epoch, epoch)
	case e.Type == events.Forked:
		return ""
	}
	base := st.Line.Base()
	live := make([]int64, 0, len(st.Live))
	for _, l := range st.Live {
		live = append(live, l.Seq)
		s, own := f.known[l.Seq]
		switch {
		case !own && l.Seq > base:
			return fmt.Sprintf("there is no summary at %d", l.Seq)
		case own && l.Seq > base && !same(s, l):
			return fmt.Sprintf("the summary at %d is not as its event says", l.Seq)
		}
	}
	for _, x := range st.Superseded {
		if x.By > base && f.shorter[x.By] != x.Seq {
			return fmt.Sprintf("there is no shorter form of the message at %d at %d", x.Seq, x.By)
		}
	}
	if e.Type != events.EpochRotated {
		return ""
	}
	var b events.EpochRotatedBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return "" // its event can't contradict it
	}
	erased := len(st.Line) > 0 && st.Line[0].SID == (events.SID{})
	switch {
	case b.Epoch != st.Epoch || b.Cause != st.Cause || b.FactorMilli != st.FactorMilli:
		return "its epoch, cause or factor is not its event's"
	case !slices.Equal(live, b.Live) && !erased:
		return fmt.Sprintf("its live summaries are %v, its event says %v", live, b.Live)
	}
	return ""
}

func same(a, b events.LiveSummary) bool {
	return a.Level == b.Level && a.Tokens == b.Tokens && a.CoveredTokens == b.CoveredTokens && a.Timestamp == b.Timestamp && slices.Equal(a.Covers, b.Covers)
}

// recounted is a stored state whose floor follows messages that a newer reader
// counts otherwise. Live summaries take off what their messages counted for when
// they were made, so the difference goes into the floor as well.
func (f *fold) recounted(st events.State) events.State {
	if len(f.recount) == 0 || f.what != All {
		return st
	}
	st.FloorOffset += f.shiftBefore(st.Start())
	for seq, d := range f.recount {
		if st.Covered(st.Line.Place(seq)) {
			st.FloorOffset += d
		}
	}
	return st
}

// shiftBefore is how much the total before the first message of a path shifted.
func (f *fold) shiftBefore(start int64) int64 {
	for seq := max(start-f.cur.Line.Base(), 1); seq < int64(len(f.tree)); seq++ {
		if n := f.tree[seq]; n.message {
			return n.shift - f.recount[seq]
		}
	}
	if f.leaf > 0 && f.leaf < int64(len(f.tree)) {
		return f.tree[f.leaf].shift
	}
	return 0
}

var (
	errBefore     = errors.New("the state before it is not known either")
	errBody       = errors.New("its event cannot be read")
	errTranscript = errors.New("a transcript's tree told the path")
	errInherited  = errors.New("it reads what was inherited")
)

// derive is the state that a step leads to from the one before, by the rules of
// the step. The factors of further models and what was forced stay as they were.
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
	path, floor := next.Path, next.FloorOffset
	switch {
	case b.To == 0:
	case len(line) > 0 && b.To == 1:
		leaf = line.Base()
		path, floor = f.inherited(nil)
	case b.To >= int64(len(f.tree)) || !f.tree[b.To].message:
		return next, fmt.Errorf("message %d is lost", b.To)
	default:
		if leaf = line.Place(b.To); !next.OnPath(leaf) {
			var err error
			if path, floor, err = f.branch(b.To); err != nil {
				return next, err
			}
		}
	}
	older := f.asOf(b.To)
	next.Path, next.FloorOffset = events.CutPath(path, leaf, line.Place(e.Seq)+1), floor
	here, there := events.KeepOnPath(next.Live, next.Path), events.KeepOnPath(older.Live, next.Path)
	shorter := next.Superseded
	if next.Live = here; covered(there) > covered(here) {
		next.Live = there
	}
	next.Superseded = events.ShownShorter(next.Path, next.Live, older.Superseded, shorter)
	next.Base, next.Cause = 0, events.CauseRewind
	return next, nil
}

func covered(live []events.LiveSummary) (n int64) {
	for i := range live {
		n += live[i].CoveredTokens
	}
	return n
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

// moveLeaf follows what a step does to the leaf.
func (f *fold) moveLeaf(e *store.Logged, before events.State) {
	if !e.Found || !e.Intact {
		return
	}
	switch e.Type {
	case events.SessionReset:
		var b events.SessionResetBody
		switch err := json.Unmarshal(e.Body, &b); {
		case err != nil || f.linked:
			f.leafSure = false
		case b.KeepFrom == 0:
			f.leaf = 0
		}
	case events.LeafMoved:
		var b events.LeafMovedBody
		switch err := json.Unmarshal(e.Body, &b); {
		case err != nil || b.Reason == "transcript" || !f.sure:
			f.leafSure = false
		case b.To == 0:
			f.leaf, f.leafOffset = 0, f.cur.FloorOffset
		case b.To < int64(len(f.tree)) && f.tree[b.To].message:
			f.leaf, f.leafOffset = b.To, max(f.tree[b.To].offset, f.cur.FloorOffset)
		case b.To == 1 && len(before.Line) > 0:
			f.leaf, f.leafOffset = 1, max(before.Line[len(before.Line)-1].Offset, f.cur.FloorOffset)
		default:
			f.leafSure = false
		}
	}
}
