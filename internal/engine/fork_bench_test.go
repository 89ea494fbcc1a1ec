package engine_test

import (
	"fmt"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// BenchmarkFork forks parents of different lengths: the cost must not follow
// the length.
func BenchmarkFork(b *testing.B) {
	for _, turns := range []int{10, 250, 2500} {
		b.Run(fmt.Sprintf("messages=%d", 4*turns), func(b *testing.B) {
			n := setup(b)
			grow(n, "p", turns)
			i := 0
			for b.Loop() {
				n.fork("p", fmt.Sprint("f", i))
				i++
			}
		})
	}
}

// BenchmarkAssembleCold compares a fork's window with its parent's, on a node
// that has cached nothing.
func BenchmarkAssembleCold(b *testing.B) {
	n := setup(b, func(c *engine.Config) { c.CacheBytes = 1 })
	grow(n, "parent", 1000)
	n.fork("parent", "fork")
	n.fork("fork", "fork of a fork")
	for i, key := range []string{"parent", "fork", "fork of a fork"} {
		n.ingest(key, talk(5000+10*i, 2)...)
	}
	for _, key := range []string{"parent", "fork", "fork of a fork"} {
		b.Run(key, func(b *testing.B) {
			budget := 20_000
			for b.Loop() {
				if _, err := n.Assemble(b.Context(), contextengine.AssembleParams{Session: on(key), TokenBudget: &budget}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func grow(n *bundle, key string, turns int) {
	n.t.Helper()
	for i := 0; i < turns; i += 100 {
		n.ingest(key, talk(i, min(100, turns-i))...)
	}
}
