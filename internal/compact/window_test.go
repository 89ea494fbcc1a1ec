package compact

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/window"
)

// TestUnitsTakeWhatTheWindowShows: a plan that counted otherwise than windows
// are built would promise what does not come true.
func TestUnitsTakeWhatTheWindowShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c conversation
		c.drawTurns(t, rapid.IntRange(0, 40).Draw(t, "turns"), 2000)
		factor := rapid.IntRange(700, 2500).Draw(t, "factor")
		w := window.Build(window.Input{
			Params:  window.Params{Budget: 1 << 30, FactorMilli: factor, Dialect: message.OpenClaw},
			Entries: c.entries,
		})
		shown := map[int64]int{}
		for _, it := range w.Items {
			shown[it.Seq] = it.Tokens
		}
		total := 0
		for _, u := range unitsOf(c.entries, factor, 0) {
			total += u.Tokens
			want := 0
			for _, i := range u.Entries {
				want += shown[c.entries[i].Seq]
			}
			if want != u.Tokens {
				t.Fatalf("unit of message %d: the window has %d tokens, counted %d", c.entries[u.Entries[0]].Seq, want, u.Tokens)
			}
		}
		if total != w.Tokens {
			t.Fatalf("counted %d tokens, the window has %d", total, w.Tokens)
		}
	})
}
