package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/test/faults/proc"
)

// TestPostgresTakesNoWrites has the server refuse writes under load, as a standby
// does and a primary that was put aside by a failover: calls answer 503, nothing
// acknowledged is lost, and work goes on when writes are taken again.
func TestPostgresTakesNoWrites(t *testing.T) {
	begin(t)
	pg := newPostgres(t)
	s := &stack{db: pg.start(t), nats: newNATS(t)}
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	s.worker(t, "worker")
	l := newLoad(t, nodes...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := l.run(ctx, t, 4)
	for range 3 {
		l.progress(ctx, t, 50)
		pg.exec(t, s.db, "ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()")
		before := l.again.Load()
		await(t, "writes are refused", func() bool { return l.again.Load() >= before+20 })
		pg.exec(t, s.db, "SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf()")
	}
	l.progress(ctx, t, 50)
	stop()
	wait()
	l.settle(t, nodes[0].URL)
	l.audit(t, nodes[1].URL)
}

// exec runs statements of an operator's, one after the other.
func (p *postgres) exec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for one := range strings.SplitSeq(sql, "; ") {
		if _, err := conn.Exec(t.Context(), one); err != nil {
			t.Fatalf("%s: %v", one, err)
		}
	}
}
