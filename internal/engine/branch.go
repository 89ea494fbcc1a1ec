package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// forkedSeq is the event that begins a fork's log. In the tree of messages it
// stands for the parent's leaf: the first messages of a fork follow it.
const forkedSeq = 1

// newestMessage is the newest message at or before one of the session's own
// seqs, on whatever branch, and the seq that names it in this session. Before
// the first own message of a fork that is the leaf it inherited, under the seq of
// the fork; the zero entry when there is none.
func (l *Lossless) newestMessage(ctx context.Context, v store.View, upto int64) (e window.Entry, own int64, err error) {
	page, err := l.cfg.Log.Facts(ctx, v.Tenant, v.SID, upto, 1, 1)
	if err != nil {
		return e, 0, err
	}
	if len(page) > 0 {
		e = page[0]
		own, e.Seq = e.Seq, v.State.Line.Place(e.Seq)
		return e, own, nil
	}
	if len(v.State.Line) == 0 {
		return e, 0, nil
	}
	began, err := l.cfg.Log.StateAsOf(ctx, v.Tenant, v.SID, forkedSeq)
	if err != nil {
		return e, 0, err
	}
	v.State = began
	e, err = l.newestOnPath(ctx, v, began.Line.Base())
	return e, forkedSeq, err
}

// newestOnPath is the newest message of the active path at or before a place.
func (l *Lossless) newestOnPath(ctx context.Context, v store.View, upto int64) (window.Entry, error) {
	line := lineOf(l.cfg.Log, v)
	for _, r := range slices.Backward(v.State.Path) {
		if r.From > upto {
			continue
		}
		page, err := line.facts(ctx, min(upto, r.To), r.From, 1)
		if err != nil || len(page) > 0 {
			return append(page, window.Entry{})[0], err
		}
	}
	return window.Entry{}, nil
}

// branchOf walks from a leaf, one of the session's own seqs, to its root and
// answers with the branch as ranges of places and the running token total before
// its first message. The root of a fork's branches is what it inherited.
func (l *Lossless) branchOf(ctx context.Context, v store.View, leaf int64) (path []events.Range, floor int64, err error) {
	line := v.State.Line
	inherited := func() ([]events.Range, int64, error) {
		began, err := l.cfg.Log.StateAsOf(ctx, v.Tenant, v.SID, forkedSeq)
		if err != nil {
			return nil, 0, err
		}
		slices.Reverse(path)
		whole := events.CutPath(began.Path, line.Base(), 0)
		return append(whole[:len(whole)-1], path...), began.FloorOffset, nil
	}
	if len(line) > 0 && leaf == forkedSeq {
		return inherited()
	}
	want, upto := leaf, leaf
	var from, to int64
	for want > 0 {
		page, err := l.cfg.Log.Parents(ctx, v.Tenant, v.SID, upto, 0, lastFactsPage)
		if err != nil {
			return nil, 0, err
		}
		for _, p := range page {
			if p.Seq != want {
				// Off the branch: close the run.
				if from > 0 && p.Seq < from {
					path, from = append(path, events.Range{From: line.Place(from), To: line.Place(to)}), 0
				}
				continue
			}
			if from == 0 {
				to = p.Seq
			}
			from, want = p.Seq, p.Parent
			root := want == 0
			if root || len(line) > 0 && want == forkedSeq {
				path = append(path, events.Range{From: line.Place(from), To: line.Place(to)})
				if !root {
					return inherited()
				}
				slices.Reverse(path)
				return path, p.Offset - p.Tokens, nil
			}
		}
		if len(page) < lastFactsPage {
			break
		}
		upto = page[len(page)-1].Seq - 1
	}
	return nil, 0, fmt.Errorf("branch of %d: message %d is missing", leaf, want)
}
