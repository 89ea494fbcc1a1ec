package faults

import (
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/test/faults/pgproxy"
)

// TestFiveNodesStartOnAnEmptyDatabase starts them at once: one migrates, all
// serve.
func TestFiveNodesStartOnAnEmptyDatabase(t *testing.T) {
	begin(t)
	s := &stack{db: testdb.Empty(t), nats: newNATS(t)}
	var nodes []*proc.Process
	for i := range 5 {
		nodes = append(nodes, proc.Launch(t, fmt.Sprintf("node %d", i+1), append(s.nodeArgs(t, s.db), "--log-level", "info")...))
	}
	migrated := 0
	for _, n := range nodes {
		n.Ready(t)
		migrated += strings.Count(n.Out.String(), "schema migrated")
		n.Quiet(t)
	}
	if migrated != 1 {
		t.Errorf("migrated by %d nodes", migrated)
	}
	l := newLoad(t, nodes...)
	l.strict = true
	g := &gateway{load: l, rand: newRand()}
	for _, n := range nodes {
		l.urls = []string{n.URL}
		g.commit("agent:main:all")
	}
	l.audit(t, nodes[0].URL)
}

// TestANodeDiesWhileItMigrates: the next one finishes what it began.
func TestANodeDiesWhileItMigrates(t *testing.T) {
	begin(t)
	s := &stack{db: testdb.Empty(t), nats: newNATS(t)}
	proxy := newProxy(t, s.db)
	trap := proxy.Set(pgproxy.After, "CREATE FUNCTION session_lock_id")
	first := proc.Launch(t, "node 1", s.nodeArgs(t, proxy.DSN())...)
	proc.Happens(t, "the node migrates", trap.Caught())
	first.Kill(t)
	trap.Cut()
	second := s.node(t, "node 2")
	l := newLoad(t, second)
	l.strict = true
	(&gateway{load: l, rand: newRand()}).commit("agent:main:main")
	l.audit(t, second.URL)
}
