package enginetest

import (
	"fmt"
	"sync"

	"github.com/engined/engined/contextengine"
)

// concurrentCallsLoseNothing: writers keep their own order and every message is
// there once, while others read and compact.
func concurrentCallsLoseNothing(e *engine) {
	const writers, each = 6, 15
	sessions := []contextengine.Session{e.on("a"), e.on("b")}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for _, s := range sessions {
					res, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: s, Message: user(fmt.Sprintf("writer %d says %d", w, i))})
					if err != nil || !res.Ingested {
						e.Errorf("ingest: %+v %v", res, err)
						return
					}
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range each {
				for _, s := range sessions {
					if res, err := e.Assemble(e.Context(), contextengine.AssembleParams{Session: s}); err != nil {
						e.Errorf("assemble: %v", err)
					} else {
						e.wellFormed(res)
					}
					if res, err := e.Compact(e.Context(), contextengine.CompactParams{Session: s}); err != nil {
						e.Errorf("compact: %v", err)
					} else {
						e.compaction(res)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, s := range sessions {
		next := map[string]int{}
		window := e.window(s)
		for w := range writers {
			for i := range each {
				next[string(user(fmt.Sprintf("writer %d says %d", w, i)))] = w*each + i
			}
		}
		newest := map[int]int{}
		for _, m := range window {
			at, ok := next[string(m)]
			if !ok {
				e.Errorf("a message that nobody wrote, or wrote once: %s", m)
				continue
			}
			delete(next, string(m))
			if w, i := at/each, at%each; i != newest[w] {
				e.Errorf("writer %d: message %d comes where %d should", w, i, newest[w])
			}
			newest[at/each]++
		}
		if len(next) > 0 {
			e.Errorf("%d of %d messages are missing", len(next), writers*each)
		}
	}
}
