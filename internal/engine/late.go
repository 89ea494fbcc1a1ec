package engine

import (
	"context"
	"slices"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// recallReach is how many seqs after a call its other results are looked for.
const recallReach = 256

// bringBack brings back calls that a summary covers when a result came after the
// compaction: a call that was dead answers after all, a long-running tool gives
// its final result. The call and its results then stand in the window as one
// group, until the next compaction covers the late result too.
func (w *windows) bringBack(ctx context.Context, s store.Session, m *material, in *window.Input) (*material, error) {
	if len(m.state.Live) == 0 {
		return m, nil
	}
	next := m
	for _, o := range orphans(m.entries) {
		if _, known := m.recalled[o.result]; known {
			continue
		}
		group, err := w.groupOf(ctx, s, m, o)
		if err != nil {
			return nil, err
		}
		if next == m {
			clone := *m
			clone.recalled = cloneMap(m.recalled)
			next = &clone
		}
		next.recalled[o.result] = group
	}
	if entries := next.withRecalled(); len(entries) != len(next.entries) {
		in.Entries = entries
	}
	return next, nil
}

// orphan is a result whose call is not among the entries before it.
type orphan struct {
	result int64
	callID string
}

func orphans(entries []window.Entry) []orphan {
	var out []orphan
	called := make(map[string]struct{})
	for _, e := range entries {
		for _, id := range e.Calls {
			called[id] = struct{}{}
		}
		for _, id := range e.Results {
			if _, ok := called[id]; !ok {
				out = append(out, orphan{result: e.Seq, callID: id})
			}
		}
	}
	return out
}

// groupOf reads the covered call that a late result answers, and the results
// that its other calls had. It is empty when the call is not covered.
func (w *windows) groupOf(ctx context.Context, s store.Session, m *material, o orphan) ([]window.Entry, error) {
	call, err := w.line(s, m).caller(ctx, o.callID, o.result)
	if err != nil || call.Seq == 0 || !m.state.OnPath(call.Seq) || !m.state.Covered(call.Seq) {
		return nil, err
	}
	page, err := w.line(s, m).facts(ctx, min(call.Seq+recallReach, o.result-1), call.Seq+1, recallReach)
	if err != nil {
		return nil, err
	}
	group := []window.Entry{call}
	for _, e := range slices.Backward(page) {
		if sharesID(e.Calls, call.Calls) {
			break // the ids begin anew
		}
		if sharesID(e.Results, call.Calls) && m.state.OnPath(e.Seq) && m.state.Covered(e.Seq) {
			group = append(group, e)
		}
	}
	return group, nil
}

func sharesID(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// withRecalled are the entries with what was recalled for them, in log order.
func (m *material) withRecalled() []window.Entry {
	out := m.entries
	for _, e := range m.entries {
		for _, r := range m.recalled[e.Seq] {
			at, there := slices.BinarySearchFunc(out, r.Seq, func(x window.Entry, seq int64) int { return int(x.Seq - seq) })
			if !there {
				out = slices.Insert(slices.Clip(out), at, r)
			}
		}
	}
	return out
}
