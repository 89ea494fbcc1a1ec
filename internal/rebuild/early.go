package rebuild

import (
	"context"
	"slices"

	"github.com/engined/engined/internal/store"
)

// writeEarly writes what can be written of events without the rest of their
// session, where that is much: page by page, each in a transaction of its own, so
// that writers wait for a page at most and what is done stays done, whatever
// comes of the rest. early tells whether it wrote any.
//
// That is whatever depends on an event's own bytes alone, and these never change.
// Where a newer reader counts otherwise, though, totals and states shift with the
// events that they count, and the shift is known only while both are as they were.
func (r *runner) writeEarly(ctx context.Context, id store.SessionID, f *fold) (early bool, err error) {
	alone := make([]store.DerivedEvent, 0, len(f.events))
	for i := range f.events {
		e := &f.events[i]
		if len(f.recount) == 0 || f.recount[e.Seq] == 0 && !f.moved[e.Seq] {
			alone = append(alone, *e)
		}
	}
	if len(alone) <= writePage {
		return false, nil
	}
	for page := range slices.Chunk(alone, writePage) {
		err := r.store.InRepair(ctx, id, func(w *store.Repair) error {
			if _, err := w.Session(ctx); err != nil {
				return err // erased meanwhile
			}
			return w.RewriteFacts(ctx, page)
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// told is what a session's first reading found, and what only the second did.
func told(first, second []note) []note {
	out := slices.Clone(first)
	for _, n := range second {
		if !n.derivable && !slices.Contains(first, n) {
			out = append(out, n)
		}
	}
	return out
}
