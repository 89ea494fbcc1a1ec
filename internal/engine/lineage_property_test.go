package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// modelled is what a session should show, and did at each of its seqs.
type modelled struct {
	key   string
	shown []string
	// at[seq] is what was shown when seq was the head.
	at [][]string
	// leaves are the seqs that a rewind can mean: messages, and a fork's point.
	leaves []int
}

func (m *modelled) wrote(shown []string) {
	m.shown = shown
	m.at = append(m.at, slices.Clone(shown))
}

// TestForkChainsAreWhatAModelSays holds trees of forks, with appends, resets and
// rewinds in between, against lists of messages. Compactions change nothing that
// the model knows: everything is covered or shown.
func TestForkChainsAreWhatAModelSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		name := func(n int) string { return fmt.Sprintf("run%d-%d", run, n) }
		root := &modelled{key: name(0), at: [][]string{nil}}
		all := []*modelled{root}
		said := 0
		say := func(m *modelled, n int) {
			for range n {
				said++
				raw := user(fmt.Sprintf("m%d-%d", run, said))
				b.ingest(m.key, raw)
				m.leaves = append(m.leaves, len(m.at))
				m.wrote(append(slices.Clone(m.shown), raw))
			}
		}
		say(root, 1)
		check := func(m *modelled, asOf int) {
			var seq *int64
			want := m.shown
			if asOf > 0 {
				seq, want = new(int64(asOf)), m.at[asOf]
			}
			res := b.windowAt(m.key, 1_000_000, seq)
			if got := strings.Join(want, "\n"); text(res) != got {
				rt.Fatalf("%s as of %d shows\n%s\nwant\n%s", m.key, asOf, text(res), got)
			}
			if seq == nil && res.Head != int64(len(m.at)-1) {
				rt.Fatalf("%s: head %d, want %d", m.key, res.Head, len(m.at)-1)
			}
		}
		for range rapid.IntRange(3, 14).Draw(rt, "steps") {
			m := rapid.SampledFrom(all).Draw(rt, "session")
			head := len(m.at) - 1
			switch rapid.SampledFrom([]string{"say", "fork", "fork", "rewind", "reset", "look"}).Draw(rt, "step") {
			case "say":
				say(m, rapid.IntRange(1, 3).Draw(rt, "messages"))
			case "fork":
				at := rapid.IntRange(1, head).Draw(rt, "at")
				child := &modelled{key: name(len(all)), at: [][]string{nil}}
				b.fork(m.key, child.key, int64(at))
				child.leaves = []int{1}
				child.wrote(slices.Clone(m.at[at]))
				all = append(all, child)
			case "rewind":
				to := rapid.SampledFrom(m.leaves).Draw(rt, "to")
				if _, err := b.Rewind(t.Context(), on(m.key), int64(to)); err != nil {
					rt.Fatal(err)
				}
				m.wrote(slices.Clone(m.at[to]))
			case "reset":
				if _, err := b.Reset(t.Context(), on(m.key), nil, ""); err != nil {
					rt.Fatal(err)
				}
				m.wrote(nil)
			}
			check(m, 0)
			check(m, rapid.IntRange(1, len(m.at)-1).Draw(rt, "as of"))
		}
		for _, m := range all {
			check(m, 0)
		}
	})
}
