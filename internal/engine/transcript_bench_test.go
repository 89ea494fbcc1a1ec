package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/engined/engined/contextengine"
)

// A page's cost: new entries, the same page again, and a copy of the whole
// under another host session id.
func BenchmarkTranscriptPage(b *testing.B) {
	for _, size := range []int{10, 200, 1000} {
		bundle := setup(b)
		var entries []json.RawMessage
		for i := range size {
			parent := ""
			if i > 0 {
				parent = fmt.Sprint("e", i-1)
			}
			entries = append(entries, json.RawMessage(entry(fmt.Sprint("e", i), parent, says("user", fmt.Sprint("message ", i)))))
		}
		page := func(b *testing.B, key, sid string) {
			b.Helper()
			l := bundle.lane(key, "g", sid)
			if _, err := bundle.Transcript(b.Context(), contextengine.TranscriptParams{Session: l.session(), Entries: entries}); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		b.Run(fmt.Sprint("new/", size), func(b *testing.B) {
			for b.Loop() {
				n++
				page(b, fmt.Sprint("k", n), "s")
			}
		})
		b.Run(fmt.Sprint("again/", size), func(b *testing.B) {
			for b.Loop() {
				page(b, "k1", "s")
			}
		})
		b.Run(fmt.Sprint("copy/", size), func(b *testing.B) {
			for b.Loop() {
				n++
				page(b, "k1", fmt.Sprint("s", n))
			}
		})
	}
}
