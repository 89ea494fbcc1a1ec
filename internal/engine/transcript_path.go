package engine

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
			mine[n.Seq] = true
		}
	}
	for i := range pg.entries {
		if e := &pg.entries[i]; e.Kind == hostlog.Message && e.seq > 0 {
			mine[e.seq] = true
		}
	}
	delete(mine, 0)
	pg.family = make(map[int64]bool)
	for l, k := range lanes {
		if l.Gateway != pg.row.Gateway {
			continue
		}
		if !slices.ContainsFunc(k.entries, func(e events.LinkedEntry) bool { return mine[e.Seq] }) {
			continue
		}
		for _, e := range k.entries {
			if kindOf(e.Type) == hostlog.Message {
				pg.family[e.Seq] = true
			}
		}
	}
	return nil
}

func nodeOf(e events.LinkedEntry) hostlog.Node {
	n := hostlog.Node{ID: e.ID, Parent: e.Parent, Kind: kindOf(e.Type), Seq: e.Seq, Type: e.Type, FirstKept: e.FirstKept, Result: e.Result}
	if e.Variant != "" {
		n.ID += "~" + e.Variant
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
	// inherited is the part of the path that a fork has from its ancestors; their
	// messages are not in all.
	inherited []events.Range
}

func (w *run) paths(ctx context.Context) (*paths, error) {
	all, err := w.tx.Tree(ctx, 1)
	if err != nil {
		return nil, err
	}
	p := &paths{all: all, by: make(map[int64]*store.TreeMessage, len(all)), show: make(map[int64]bool, len(all))}
	line := w.tx.State.Line
	for _, r := range w.tx.State.Path {
		if r.From <= line.Base() {
			p.inherited = append(p.inherited, events.Range{From: r.From, To: min(r.To, line.Base())})
		}
	}
	for i := range all {
		m := &all[i]
		p.by[m.Seq] = m
		if w.tx.State.OnPath(line.Place(m.Seq)) {
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
	for _, seq := range w.tree.Seqs() {
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
	for _, seq := range w.tree.Seqs() {
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
		body: func(leaf int64) any { return events.LeafMovedBody{To: leaf, Reason: "transcript"} },
	})
}

// foreignReset is the seq of the newest reset if this lane knows nothing of it:
// then a walk over the lane can't tell what the reset hid.
func (w *run) foreignReset(ctx context.Context) (int64, error) {
	seq, err := w.tx.NewestReset(ctx)
	if err != nil || seq == 0 || w.tree.HasReset(seq) {
		return 0, err
	}
	return seq, nil
}

// reparent puts the messages of the segment under those that they follow in the
// host's tree.
func (w *run) reparent(ctx context.Context, p *paths, segment []*placed) error {
	var seqs, parents, totals []int64
	before := w.leafBefore
	for _, e := range segment {
		m := p.by[e.seq]
		if m == nil {
			continue
		}
		if parent := w.tree.MessageBefore(e.node()); parent != before && p.by[parent] != nil {
			m.Parent, m.Offset = parent, p.by[parent].Offset+int64(m.Tokens)
			seqs, parents, totals = append(seqs, m.Seq), append(parents, m.Parent), append(totals, m.Offset)
		} else if prev := p.by[before]; prev != nil && m.Offset != prev.Offset+int64(m.Tokens) && m.Parent == before {
			m.Offset = prev.Offset + int64(m.Tokens)
			seqs, parents, totals = append(seqs, m.Seq), append(parents, m.Parent), append(totals, m.Offset)
		}
		before = e.seq
	}
	return w.tx.Reparent(ctx, seqs, parents, totals)
}

// stepCause is what a step says of itself. body learns the leaf.
type stepCause struct {
	typ   events.Type
	cause events.Cause
	body  func(leaf int64) any
}

// step commits an epoch whose path is what p shows.
func (w *run) step(ctx context.Context, p *paths, c stepCause) error {
	line := w.tx.State.Line
	at := line.Place(w.tx.Session.Head + 1)
	next := w.tx.State
	next.Path = slices.Clone(p.inherited)
	var leaf, offset, total int64
	if len(p.inherited) > 0 {
		leaf, offset = forkedSeq, line[len(line)-1].Offset
		total = offset - w.tx.State.FloorOffset
	}
	open := false // the last range goes on over messages that are shown
	for i := range p.all {
		m := &p.all[i]
		if !p.show[m.Seq] {
			open = false
			continue
		}
		if open {
			next.Path[len(next.Path)-1].To = line.Place(m.Seq)
		} else {
			next.Path = append(next.Path, events.Range{From: line.Place(m.Seq), To: line.Place(m.Seq)})
		}
		open = true
		leaf, offset, total = m.Seq, max(offset, m.Offset), total+int64(m.Tokens)
	}
	if offset = max(offset, total); leaf == 0 {
		offset = w.tx.Session.LeafOffset
	}
	next.Path = append(next.Path, events.Range{From: at + 1, To: events.Open})
	next.FloorOffset = offset - total
	older, err := w.tx.StateAsOf(ctx, leaf)
	if err != nil {
		return err
	}
	next.Live = mostCovering(events.KeepOnPath(w.tx.State.Live, next.Path), events.KeepOnPath(older.Live, next.Path))
	next.Base, next.ForcedAt, next.Cause = 0, 0, c.cause
	raw, err := json.Marshal(c.body(leaf))
	if err != nil {
		return err
	}
	out, err := w.tx.Step(ctx, store.EpochStep{
		Events: []store.NewEvent{{Type: c.typ, Body: raw}}, State: next, LeafSeq: leaf, LeafOffset: offset,
		Host: true, Gateway: w.row.Gateway, HostSession: w.row.HostSession, PaysDebt: true,
	})
	if err != nil {
		return err
	}
	w.stepped = append(w.stepped, out)
	return nil
}
