package faults

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/engined/engined/test/faults/proc"
)

// TestNodesAreKilledUnderLoad kills one of two nodes, then the other, again and
// again: nothing acknowledged is lost or doubled.
func TestNodesAreKilledUnderLoad(t *testing.T) {
	begin(t)
	s := newStack(t)
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	s.worker(t, "worker")
	l := newLoad(t, nodes...)

	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	wait := l.run(ctx, t, 6)
	kills := 0
	for ; ctx.Err() == nil; kills++ {
		i := kills % len(nodes)
		l.progress(ctx, t, 5+rand.Int64N(40))
		nodes[i].Kill(t)
		l.progress(ctx, t, 5+rand.Int64N(40)) // the other one serves
		nodes[i] = nodes[i].Again(t)
	}
	wait()
	t.Logf("%d kills", kills)
	l.settle(t, nodes[0].URL)
	l.audit(t, nodes[1].URL)
}

// progress waits until n more writes are acknowledged, or ctx ends.
func (l *load) progress(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	want := l.acked.Load() + n
	await(t, "the load goes on", func() bool { return ctx.Err() != nil || l.acked.Load() >= want })
}
