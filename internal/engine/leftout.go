package engine

import (
	"context"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// countEarlier counts the messages that the window leaves out without having
// looked at them. The count goes with the material: it is made once for each
// place up to which a node has read.
func (w *windows) countEarlier(ctx context.Context, s store.Session, m *material) (*material, error) {
	if !m.older || m.earlierOf == m.loaded {
		return m, nil
	}
	next := *m
	next.earlierOf = m.loaded
	var err error
	next.earlier, err = w.line(s, m).count(ctx, m.unread())
	return &next, err
}

// unread are the runs of the path that are neither loaded nor covered.
func (m *material) unread() []events.Range {
	first := m.state.FirstUncovered()
	var out []events.Range
	for _, p := range m.state.Path {
		if r := (events.Range{From: max(p.From, first), To: min(p.To, m.loaded-1)}); r.From <= r.To {
			out = append(out, r)
		}
	}
	for i := range m.state.Live {
		for _, c := range m.state.Live[i].Covers {
			out = without(out, c)
		}
	}
	return out
}

// without takes a run out of others.
func without(runs []events.Range, hole events.Range) []events.Range {
	out := make([]events.Range, 0, len(runs)+1)
	for _, r := range runs {
		if hole.To < r.From || r.To < hole.From {
			out = append(out, r)
			continue
		}
		if r.From < hole.From {
			out = append(out, events.Range{From: r.From, To: hole.From - 1})
		}
		if hole.To < r.To {
			out = append(out, events.Range{From: hole.To + 1, To: r.To})
		}
	}
	return out
}

// leftOut counts the messages of the path that are neither shown nor covered by
// a summary that is shown, whatever the reason. It is the same on a node that
// has read the whole path and on one that has read its end.
func (m *material) leftOut(plan window.Plan) int {
	n := int64(len(m.entries))
	if m.older {
		n += m.earlier
	}
	shown := make(map[int64]bool, len(plan.Summaries))
	for _, it := range plan.Items {
		switch {
		case it.Kind == window.KindSummary:
			shown[it.Seq] = true
		case it.Kind == window.KindMessage && !m.state.Covered(it.Seq):
			n--
		}
	}
	for i := range m.state.Live {
		if l := &m.state.Live[i]; !shown[l.Seq] {
			for _, c := range l.Covers {
				n += c.To - c.From + 1
			}
		}
	}
	return int(n)
}
