package rebuild

import (
	"encoding/json"
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
