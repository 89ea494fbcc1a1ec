package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// material is what a window is planned from: immutable once made.
type material struct {
	sid   uuid.UUID
	epoch int64
	// head is a place in the session's line, as all numbers of events are here.
	head  int64
	state events.State
	// entries are the uncovered messages of the path up to head, in log order,
	// from loaded on; older tells that more lie before.
	entries []window.Entry
	loaded  int64
	older   bool
	// earlier counts the uncovered messages of the path before earlierOf.
	earlier   int64
	earlierOf int64
	// recalled are covered calls that late results brought back, by the result.
	recalled map[int64][]window.Entry
	bodies   map[int64][]byte
	texts    map[int64]string
}

// load reads the session and what a window at its head, or as of a seq, is
// planned from, starting from the cached material where there is some.
func (w *windows) load(ctx context.Context, p contextengine.AssembleParams) (store.Session, *material, error) {
	cached := w.cache.get(p.Tenant, p.SessionKey)
	if p.AsOfSeq != nil || cached == nil {
		cached = &material{}
	}
	v, err := w.cfg.Log.View(ctx, p.Tenant, p.SessionKey, cached.sid, cached.head-cached.state.Line.Base(), newPage)
	if err != nil {
		return store.Session{}, nil, err
	}
	if p.AsOfSeq != nil && *p.AsOfSeq < v.Head {
		state, err := w.cfg.Log.StateAsOf(ctx, p.Tenant, v.SID, *p.AsOfSeq)
		if err != nil {
			return store.Session{}, nil, err
		}
		m := cold(v.Session, state, state.Line.Place(*p.AsOfSeq))
		// A session that starts with messages of no dialect learns its own later.
		v.Session.Dialect, err = w.line(v.Session, m).dialect(ctx, m.head)
		return v.Session, m, err
	}
	if cached.sid != v.SID || cached.epoch != v.Epoch || len(v.New) == newPage {
		return v.Session, cold(v.Session, v.State, v.State.Line.Place(v.Head)), nil
	}
	m := *cached
	m.head = m.state.Line.Place(v.Head)
	if len(v.New) > 0 {
		m.entries = slices.Clone(m.entries)
		m.bodies = cloneMap(m.bodies)
		for i, e := range v.New {
			e.Seq = m.state.Line.Place(e.Seq)
			if m.state.OnPath(e.Seq) && !m.state.Covered(e.Seq) {
				m.entries = append(m.entries, e)
				m.bodies[e.Seq] = v.Bodies[i]
			}
		}
	}
	return v.Session, &m, nil
}

// cold is material of which nothing is read yet.
func cold(s store.Session, state events.State, head int64) *material {
	return &material{
		sid: s.SID, epoch: state.Epoch, head: head, state: state, loaded: head + 1,
		older: head >= state.FirstUncovered(), bodies: map[int64][]byte{}, texts: map[int64]string{},
	}
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m)+8)
	maps.Copy(out, m)
	return out
}

// reach reads older facts until the plan would be the same with all of them;
// all of them, where each is to be explained.
func (w *windows) reach(ctx context.Context, s store.Session, m *material, in *window.Input, all bool) (*material, error) {
	since := m.state.FirstUncovered()
	for page := firstFactsPage; window.NeedMore(*in) || all && in.Older; page = min(2*page, lastFactsPage) {
		facts, err := w.line(s, m).facts(ctx, m.loaded-1, since, page)
		if err != nil {
			return nil, err
		}
		next := *m
		next.older = len(facts) == page
		next.entries = make([]window.Entry, 0, len(facts)+len(m.entries))
		for _, e := range slices.Backward(facts) {
			if m.state.OnPath(e.Seq) && !m.state.Covered(e.Seq) {
				next.entries = append(next.entries, shorter(&m.state, e))
			}
		}
		next.entries = append(next.entries, m.entries...)
		if len(facts) > 0 {
			next.loaded = facts[len(facts)-1].Seq
		}
		m = &next
		in.Entries, in.Older = m.entries, m.older
	}
	return m, nil
}
