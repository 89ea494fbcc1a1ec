package engine

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/hostlog"
	"github.com/engined/engined/internal/store"
)

// skipInherited takes entries out of the page that a fork has from its ancestors:
// a host copies them, with their ids, into the fork's own transcript. They are
// duplicates, and what follows them follows the fork's point.
func (pg *page) skipInherited(ctx context.Context) error {
	line := pg.tx.State.Line
	if len(line) == 0 {
		return nil
	}
	ids := make([]string, 0, len(pg.entries))
	for i := range pg.entries {
		if e := &pg.entries[i]; e.Kind != hostlog.Header {
			ids = append(ids, e.ID)
		}
	}
	byID := make(map[string][]store.KnownEntry)
	for _, seg := range line {
		if seg.SID == (events.SID{}) {
			continue
		}
		known, err := pg.tx.EntriesOf(ctx, uuid.UUID(seg.SID), ids)
		if err != nil {
			return err
		}
		for _, k := range known {
			if seg.After+k.Seq <= seg.To {
				byID[k.ID] = append(byID[k.ID], k)
			}
		}
	}
	kept := pg.entries[:0]
	for i := range pg.entries {
		e := pg.entries[i]
		inherited := false
		for _, k := range byID[e.ID] {
			inherited = inherited || e.Kind != hostlog.Header && bytes.Equal(k.Hash, e.hash[:])
		}
		if !inherited {
			kept = append(kept, e)
		}
	}
	pg.entries = kept
	return nil
}
