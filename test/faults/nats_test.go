package faults

import (
	"context"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/internal/bus/bustest"
)

// TestNATSIsWipedUnderLoad stops NATS, takes its disk away and starts it again:
// no call fails, and every compaction that was owed happens.
func TestNATSIsWipedUnderLoad(t *testing.T) {
	begin(t)
	s := newStack(t)
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	s.worker(t, "worker 1")
	s.worker(t, "worker 2")
	l := newLoad(t, nodes...)
	l.strict = true

	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	wait := l.run(ctx, t, 4)
	wipes := 0
	for ; ctx.Err() == nil; wipes++ {
		l.progress(ctx, t, 50)
		bustest.Stop(t, s.nats)
		l.progress(ctx, t, 50) // without NATS
		if err := s.nats.Wipe(); err != nil {
			t.Fatal(err)
		}
		bustest.Resume(t, s.nats)
	}
	wait()
	t.Logf("%d wipes", wipes)
	l.settle(t, nodes[0].URL)
	l.audit(t, nodes[1].URL)
	for _, n := range nodes {
		n.Quiet(t)
	}
}
