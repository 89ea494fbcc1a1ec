package faults

import (
	"context"
	"testing"

	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/test/faults/proc"
)

// TestNodesBehindPgBouncer runs nodes and a worker whose only way to Postgres is a
// pooler in transaction mode with four connections: no call may fail, and every
// compaction that is owed comes.
func TestNodesBehindPgBouncer(t *testing.T) {
	begin(t)
	s := &stack{db: testdb.Bounce(t, testdb.New(t)), nats: newNATS(t)}
	pooled := []string{"--pgbouncer", "--no-migrate"}
	one, two := s.node(t, "node 1", pooled...), s.node(t, "node 2", pooled...)
	worker := s.worker(t, "worker", pooled...)
	l := newLoad(t, one, two)
	l.strict = true
	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	l.run(ctx, t, 4)()
	l.settle(t, one.URL)
	l.audit(t, two.URL)
	for _, p := range []*proc.Process{one, two, worker} {
		p.Quiet(t)
	}
}
