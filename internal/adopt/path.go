package adopt

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

// needTree loads the lane's tree if the page does more than go on where the
// lane ended.
func (pg *page) needTree(ctx context.Context) error {
	leaf := pg.pos.Leaf
	for i := range pg.entries {
		e := &pg.entries[i]
		if e.identity == isKnown || e.Kind == hostlog.Header {
			continue
		}
		fresh := e.identity == isNew || e.identity == isNamed
		switch {
		case e.Kind == hostlog.Leaf, e.Kind == hostlog.Reset && e.FirstKept != "", e.parent != leaf,
			fresh && e.Kind == hostlog.Message && pg.pos.Copied && !pg.pos.Settled:
			return pg.loadTree(ctx)
		}
		if !e.Side {
			leaf = e.node()
		}
	}
	return nil
}

// loadTree builds the lane's tree from what was linked, and finds the messages
// of its kin: lanes of the same gateway that share entries with it.
func (pg *page) loadTree(ctx context.Context) error {
	if pg.loaded {
		return nil
	}
	pg.loaded = true
	linked, err := pg.tx.Links(ctx)
	if err != nil {
		return err
	}
	type known struct {
		entries []events.LinkedEntry
	}
	lanes := make(map[store.Lane]*known)
	for _, ev := range linked {
		var b events.IdentityLinkedBody
		if err := json.Unmarshal(ev.Body, &b); err != nil {
			return err
		}
		l := store.Lane{Gateway: b.Gateway, HostSession: b.HostSessionID}
		if lanes[l] == nil {
			lanes[l] = &known{}
		}
		lanes[l].entries = append(lanes[l].entries, b.Entries...)
	}
	mine := make(map[int64]bool)
	if own := lanes[pg.row.Lane]; own != nil {
		for _, e := range own.entries {
			n := nodeOf(e)
			pg.tree.Add(n)
			mine[n.Place] = true
		}
	}
	for i := range pg.entries {
		if e := &pg.entries[i]; e.Kind == hostlog.Message && e.place > 0 {
			mine[e.place] = true
		}
	}
	delete(mine, 0)
	pg.family = make(map[int64]bool)
	for l, k := range lanes {
		if l.Gateway != pg.row.Gateway {
			continue
		}
		if !slices.ContainsFunc(k.entries, func(e events.LinkedEntry) bool { return mine[e.Place] }) {
			continue
		}
		for _, e := range k.entries {
			if kindOf(e.Type) == hostlog.Message {
				pg.family[e.Place] = true
			}
		}
	}
	return nil
}

func nodeOf(e events.LinkedEntry) hostlog.Node {
	n := hostlog.Node{ID: e.ID, Parent: e.Parent, Kind: kindOf(e.Type), Place: e.Place, Type: e.Type, FirstKept: e.FirstKept, Result: e.Result}
	if e.Variant != "" {
		n.ID, n.Shared = e.ID+"~"+e.Variant, e.ID
	}
	return n
}

func kindOf(t string) hostlog.Kind {
	switch t {
	case "message", "custom_message", "branch_summary":
		return hostlog.Message
	case "leaf":
		return hostlog.Leaf
	case "reset":
		return hostlog.Reset
	case "session":
		return hostlog.Header
	}
	return hostlog.Record
}

// paths is what a step over a lane's path is made from.
type paths struct {
	all  []store.TreeMessage
	by   map[int64]*store.TreeMessage
	show map[int64]bool // on the active path afterwards
}

func (w *run) paths(ctx context.Context) (*paths, error) {
	all, err := w.tx.Tree(ctx)
	if err != nil {
		return nil, err
	}
	p := &paths{all: all, by: make(map[int64]*store.TreeMessage, len(all)), show: make(map[int64]bool, len(all))}
	for i := range all {
		m := &all[i]
		p.by[m.Seq] = m
		if w.tx.State.OnPath(m.Seq) {
			p.show[m.Seq] = true
		}
	}
	return p, nil
}

// shown are the messages that the host shows of the lane, with results that
// hang beside the path but answer its calls.
func (w *run) shown(p *paths, leaf string) (map[int64]bool, bool) {
	seqs, compacted := w.tree.Path(leaf)
	out := make(map[int64]bool, len(seqs))
	open := make(map[string]bool)
	for _, seq := range seqs {
		out[seq] = true
		m := p.by[seq]
		if m == nil {
			continue
		}
		for _, c := range m.Calls {
			open[c] = true
		}
		for _, r := range m.Results {
			delete(open, r)
		}
	}
	for _, seq := range w.tree.Messages() {
		m := p.by[seq]
		if m == nil || out[seq] || m.Role != message.Result {
			continue
		}
		for _, r := range m.Results {
			if open[r] {
				out[seq] = true
				delete(open, r)
			}
		}
	}
	return out, compacted
}

// follow makes the session show the lane's path, if it does not.
func (w *run) follow(ctx context.Context, segment []*placed) error {
	p, err := w.paths(ctx)
	if err != nil {
		return err
	}
	shown, compacted := w.shown(p, w.pos.Leaf)
	floor, err := w.foreignReset(ctx)
	if err != nil {
		return err
	}
	differs := false
	set := func(seq int64, show bool) {
		if p.by[seq] != nil && p.show[seq] != show {
			p.show[seq] = show
			differs = true
		}
	}
	for _, seq := range w.tree.Messages() {
		if !shown[seq] {
			set(seq, false)
		}
	}
	if !compacted {
		for seq := range w.family {
			if !shown[seq] {
				set(seq, false)
			}
		}
	}
	for seq := range shown {
		if seq > floor {
			set(seq, true)
		}
	}
	if !differs {
		return nil
	}
	if err := w.reparent(ctx, p, segment); err != nil {
		return err
	}
	return w.step(ctx, p, stepCause{
		typ: events.LeafMoved, cause: events.CauseRewind,
		body: func(leaf int64, path []events.Range) any {
			return events.LeafMovedBody{To: leaf, Reason: "transcript", Path: path}
		},
	})
}

// foreignReset is the place of the newest reset that this lane knows nothing
// of: a walk over the lane can't tell what that one hid.
func (w *run) foreignReset(ctx context.Context) (int64, error) {
	resets, err := w.tx.Resets(ctx)
	if err != nil {
		return 0, err
	}
	for _, place := range slices.Backward(resets) {
		if !w.tree.HasReset(place) {
			return place, nil
		}
	}
	return 0, nil
}

// reparent puts the messages of the segment under those that they follow in the
// host's tree.
func (w *run) reparent(ctx context.Context, p *paths, segment []*placed) error {
	var seqs, parents, totals []int64
	line := w.tx.State.Line
	before := line.Place(w.leafBefore)
	for _, e := range segment {
		m := p.by[e.place]
		if m == nil {
			continue
		}
		parent := before
		if at := w.tree.MessageBefore(e.node()); p.by[at] != nil {
			parent = at
		}
		total := int64(m.Tokens)
		if above := p.by[parent]; above != nil {
			total += above.Offset
		}
		if seq := w.ownSeq(parent); p.by[parent] != nil && (m.Parent != seq || m.Offset != total) {
			m.Parent, m.Offset = seq, total
			seqs, parents, totals = append(seqs, line.Seq(m.Seq)), append(parents, seq), append(totals, total)
		}
		before = e.place
	}
	return w.tx.Reparent(ctx, seqs, parents, totals)
}

// stepCause is what a step says of itself. body learns the leaf and the path.
type stepCause struct {
	typ   events.Type
	cause events.Cause
	body  func(leaf int64, path []events.Range) any
}

// step commits an epoch whose path is what p shows.
func (w *run) step(ctx context.Context, p *paths, c stepCause) error {
	next := w.tx.State
	next.Path = nil
	var leaf, offset, total int64
	open := false // the last range goes on over messages that are shown
	for i := range p.all {
		m := &p.all[i]
		if !p.show[m.Seq] {
			open = false
			continue
		}
		if open {
			next.Path[len(next.Path)-1].To = m.Seq
		} else {
			next.Path = append(next.Path, events.Range{From: m.Seq, To: m.Seq})
		}
		open = true
		leaf, offset, total = m.Seq, max(offset, m.Offset), total+int64(m.Tokens)
	}
	if offset = max(offset, total); leaf == 0 {
		offset = w.tx.Session.LeafOffset
	}
	next.Path = append(next.Path, events.Range{From: next.Line.Place(w.tx.Session.Head + 2), To: events.Open})
	next.FloorOffset = offset - total
	seq := w.ownSeq(leaf)
	older, err := w.tx.StateAsOf(ctx, seq)
	if err != nil {
		return err
	}
	next.Live = events.MostCovering(events.KeepOnPath(w.tx.State.Live, next.Path), events.KeepOnPath(older.Live, next.Path))
	next.Base, next.ForcedAt, next.Cause = 0, 0, c.cause
	raw, err := json.Marshal(c.body(seq, next.Path[:len(next.Path)-1]))
	if err != nil {
		return err
	}
	out, err := w.tx.Step(ctx, store.EpochStep{
		Events: []store.NewEvent{{Type: c.typ, Body: raw}}, State: next, LeafSeq: seq, LeafOffset: offset,
		Host: true, Gateway: w.row.Gateway, HostSession: w.row.HostSession, PaysDebt: true,
	})
	if err != nil {
		return err
	}
	w.stepped = append(w.stepped, out)
	return nil
}
