package adopt

import (
	"context"
	"encoding/json"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
)

// shownResets finds the resets of the page that were made by a call before the
// transcript showed them: by the index of the entry, the reset's place. A reset lies
// behind what stands before its entry and in front of what stands behind it.
func (pg *page) shownResets(ctx context.Context) (map[int]int64, error) {
	var at []int
	for i := range pg.entries {
		if e := &pg.entries[i]; e.Kind == hostlog.Reset && e.identity == isNew {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	rows, err := pg.tx.UnnamedResets(ctx)
	if err != nil {
		return nil, err
	}
	var made []int64
	for _, r := range rows {
		var b events.SessionResetBody
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return nil, err
		}
		if b.HostSessionID == pg.row.HostSession && (r.Gateway == pg.row.Gateway || r.Gateway == "" || pg.row.Gateway == "") {
			made = append(made, pg.tx.State.Line.Place(r.Seq))
		}
	}
	out := make(map[int]int64)
	for _, i := range at {
		before, after := pg.around(i)
		for len(made) > 0 && made[0] < before {
			made = made[1:]
		}
		if len(made) > 0 && (after == 0 || made[0] < after) {
			out[i] = made[0]
			made = made[1:]
		}
	}
	return out, nil
}

// around are the nearest messages, in the host's order, that were in the log
// before this page came; 0 for none.
func (pg *page) around(i int) (before, after int64) {
	before = pg.pos.Newest
	for j := range pg.entries {
		e := &pg.entries[j]
		if e.Kind != hostlog.Message || e.place <= 0 {
			continue
		}
		if j < i {
			before = e.place
		} else if after == 0 {
			after = e.place
		}
	}
	return before, after
}

// reset hides what the session shows, of every lane, but for what the entry
// keeps.
func (w *run) reset(ctx context.Context, e *placed) error {
	p, err := w.paths(ctx)
	if err != nil {
		return err
	}
	kept, _ := w.tree.Path(e.node())
	first := int64(0)
	for _, place := range kept {
		if first == 0 || place < first {
			first = place
		}
	}
	own := make(map[int64]bool)
	for _, place := range w.tree.Messages() {
		own[place] = true
	}
	for place := range p.show {
		p.show[place] = p.show[place] && first > 0 && place >= first && !own[place]
	}
	for _, place := range kept {
		p.show[place] = true
	}
	err = w.step(ctx, p, stepCause{
		typ: events.SessionReset, cause: events.CauseReset,
		body: func(_ int64, path []events.Range) any {
			return events.SessionResetBody{KeepFrom: w.ownSeq(first), Reason: e.Reason, HostSessionID: w.row.HostSession, Path: path}
		},
	})
	if err != nil {
		return err
	}
	e.place = w.tx.State.Line.Place(w.tx.Session.Head)
	w.tree.Put(e.node(), e.place)
	w.moved, w.leafBefore = false, w.tx.Session.LeafSeq
	return nil
}
