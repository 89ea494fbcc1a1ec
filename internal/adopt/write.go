package adopt

import (
	"context"
	"encoding/json"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// write appends what the page has that is new, makes the steps that it calls
// for and links its entries.
func (pg *page) write(ctx context.Context) error {
	resets, err := pg.shownResets(ctx)
	if err != nil {
		return err
	}
	if err := pg.needTree(ctx); err != nil {
		return err
	}
	w := pg.newRun(resets)
	if !pg.tx.Known {
		if err := w.bind(); err != nil {
			return err
		}
	}
	changed := false
	for i := range pg.entries {
		e := &pg.entries[i]
		if e.identity == isKnown {
			pg.resolve(e)
			pg.remember(e)
			continue
		}
		changed = true
		pg.resolve(e)
		if e.Kind == hostlog.Reset && e.identity == isNew {
			if place := resets[i]; place > 0 {
				e.identity, e.place = isNamed, place
			}
		}
		if e.identity == isNew {
			pg.stored++
			if e.Kind == hostlog.Message {
				pg.messages++
			}
		}
		if err := w.add(ctx, e); err != nil {
			return err
		}
		pg.remember(e)
	}
	if err := w.flush(ctx, true); err != nil {
		return err
	}
	if !changed {
		return w.gate(ctx)
	}
	return w.link(ctx)
}

// resolve gives an entry that stands for another one of the same page its place.
func (pg *page) resolve(e *placed) {
	if e.place < 0 {
		e.place = pg.entries[-1-e.place].place
	}
}

func (pg *page) remember(e *placed) {
	if e.Kind == hostlog.Message {
		pg.pos.Newest = e.place
	}
}

// run is the writing of a page. Messages gather until a step ends their
// segment, for a step fixes the path as of its own place in the log.
type run struct {
	*page
	item *store.Item
	// first is whether nothing was appended yet; expectations go with that.
	first bool
	// anyNew is whether anything of the page was never seen.
	anyNew bool
	// segment are the messages of the item, as entries.
	segment []*placed
	// leafBefore is the session's leaf before the segment.
	leafBefore int64
	// moved is set when the lane's path may no longer be what is shown of it.
	moved bool
	links []events.LinkedEntry
	keys  []store.KeyRow
}

func (pg *page) newRun(resets map[int]int64) *run {
	w := &run{page: pg, first: true}
	for i := range pg.entries {
		w.anyNew = w.anyNew || pg.entries[i].identity == isNew && resets[i] == 0
	}
	w.begin()
	return w
}

func (w *run) begin() {
	w.item = w.newItem()
	w.segment, w.leafBefore = nil, w.tx.Session.LeafSeq
}

// newItem starts a part of the page's write. What the caller expects is held
// against the first, and only where something is stored: what is known already
// is never refused.
func (w *run) newItem() *store.Item {
	s, x := w.p.Session, w.p.Expectations
	if !w.first || !w.anyNew {
		s.LeaseToken, x = "", contextengine.Expectations{}
	}
	return store.HostItem(s, x)
}

// next is the place that the next event of the item gets.
func (w *run) next() int64 {
	return w.tx.State.Line.Place(w.tx.Session.Head + int64(len(w.item.Events)) + 1)
}

// ownSeq is the seq of what stands at a place; for what was inherited that of
// the session's first event, which stands for all of it.
func (w *run) ownSeq(place int64) int64 {
	if place <= 0 {
		return 0
	}
	return max(place-w.tx.State.Line.Base(), 1)
}

func (w *run) bind() error {
	body, err := json.Marshal(events.HostSessionBody{
		Gateway: w.row.Gateway, HostSessionID: w.row.HostSession, Revision: w.p.LifecycleRevision,
	})
	if err != nil {
		return err
	}
	w.item.Events = append(w.item.Events, store.NewEvent{Type: events.HostSessionBound, Body: body})
	return nil
}

// add takes an entry that is new in its lane.
func (w *run) add(ctx context.Context, e *placed) error {
	fresh := e.identity == isNew || e.identity == isNamed
	if e.Kind == hostlog.Message && e.identity == isNew {
		e.place = w.next()
		w.item.Events = append(w.item.Events, e.Event)
		w.segment = append(w.segment, e)
	}
	branched := false
	switch e.Kind {
	case hostlog.Header:
	case hostlog.Leaf:
		branched = e.Target != w.pos.Leaf
		w.pos.Leaf = e.Target
	default:
		branched = e.parent != w.pos.Leaf && !w.sibling(e)
		if !e.Side {
			w.pos.Leaf = e.node()
		}
	}
	if e.Kind != hostlog.Header {
		w.tree.Add(e.treeNode())
	}
	if fresh && (e.Kind == hostlog.Message || e.Kind == hostlog.Leaf || e.Kind == hostlog.Reset) {
		// The first thing that a copy does by itself shows where it stands.
		w.moved = w.moved || w.pos.Copied && !w.pos.Settled
		w.pos.Settled = true
	}
	if branched && w.pos.Settled {
		w.moved = true
	}
	if e.Kind == hostlog.Reset && e.identity == isNew {
		if err := w.flush(ctx, false); err != nil {
			return err
		}
		if err := w.reset(ctx, e); err != nil {
			return err
		}
	}
	w.links = append(w.links, e.link())
	kind := store.EntryKey(e.ID, w.row.Lane, e.variant)
	seq := e.place
	if base := w.tx.State.Line.Base(); seq > base {
		seq -= base
	} else {
		seq = -seq // what is inherited has no seq here
	}
	w.keys = append(w.keys, store.KeyRow{Key: kind, Seq: seq, Hash: e.Digest[:]})
	if e.Kind == hostlog.Message && seq > 0 {
		for _, anchor := range anchorKeys(e.ID, e.Read) {
			w.keys = append(w.keys, store.KeyRow{Key: anchor, Seq: seq, Hash: e.Digest[:]})
		}
	}
	return nil
}

// sibling reports a result that hangs beside another result of the same calls.
func (w *run) sibling(e *placed) bool {
	if e.Kind != hostlog.Message || e.Read.Role != message.Result {
		return false
	}
	between, ok := w.tree.Above(w.pos.Leaf, e.parent)
	if !ok || len(between) == 0 {
		return false
	}
	for _, n := range between {
		if n.Kind != hostlog.Message && n.Kind != hostlog.Record {
			return false
		}
		if n.Kind == hostlog.Message && !n.Result {
			return false
		}
	}
	return true
}

// flush appends what has gathered. At the page's end, or where the lane's path
// has moved, it makes the step that shows it.
func (w *run) flush(ctx context.Context, end bool) error {
	if len(w.item.Events) > 0 {
		if _, err := w.tx.Append(ctx, w.item); err != nil {
			return err
		}
		w.first = false
	}
	moved, segment := w.moved, w.segment
	w.moved = w.moved && !end
	if moved && end {
		if err := w.follow(ctx, segment); err != nil {
			return err
		}
	}
	w.begin()
	return nil
}

// gate holds a page without anything new to the rule for erased sessions.
func (w *run) gate(ctx context.Context) error {
	_, err := w.tx.Append(ctx, w.newItem())
	return err
}

// link writes what the page's entries are.
func (w *run) link(ctx context.Context) error {
	body, err := json.Marshal(events.IdentityLinkedBody{
		Gateway: w.row.Gateway, HostSessionID: w.row.HostSession, Entries: w.links,
	})
	if err != nil {
		return err
	}
	it := w.newItem()
	it.Events = []store.NewEvent{{Type: events.IdentityLinked, Body: body}}
	a, err := w.tx.Append(ctx, it)
	if err != nil {
		return err
	}
	for i := range w.keys {
		if w.keys[i].Seq == 0 {
			w.keys[i].Seq = a.Seqs[0]
		}
	}
	return w.tx.PutKeys(ctx, w.keys)
}
