package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/pgproxy"
)

// TestASessionGrowsWhileItIsCompacted: turns that come between the plan and the
// commit of a compaction are stored at once. Where they alone are too much, the
// session owes the next one.
func TestASessionGrowsWhileItIsCompacted(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	l := newLoad(t, node)
	l.strict = true
	proxy := newProxy(t, s.db)
	s.workerOn(t, "worker", proxy.DSN())
	trap := proxy.Set(pgproxy.Before, "-- name: LockSession")
	const session = "agent:main:growing"
	g := owing(t, l, session)
	proc.Happens(t, "the worker is about to commit", trap.Caught())
	for range 20 {
		g.commit(session)
	}
	trap.Go()
	l.paid(t, node.URL)
	l.audit(t, node.URL)
}

// TestASessionGrowsWhileThereIsNothingToGain: a debt that a worker finds no use
// in is only forgiven if it is still the one that the worker looked at.
func TestASessionGrowsWhileThereIsNothingToGain(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	l := newLoad(t, node)
	l.strict = true
	proxy := newProxy(t, s.db)
	s.workerOn(t, "worker", proxy.DSN())
	trap := proxy.Set(pgproxy.Before, "-- name: SettleDebt")
	const session = "agent:main:large"
	// One message cannot be compacted: the newest one of the user is always shown.
	g := &gateway{load: l, rand: newRand()}
	g.made++
	large := fmt.Appendf(nil, `{"role":"user","content":%q}`, strings.Repeat("what does this mean? ", 540))
	w := l.rec.Begin(session, audit.Commit, large)
	a := l.post(t.Context(), node.URL, session, "commit-turn", object(
		"advancementKey", quote("large"), "messages", array([][]byte{large}), "tokenBudget", fmt.Append(nil, budget)))
	if a.status != http.StatusOK || !strings.Contains(string(a.body), "scheduled") {
		t.Fatalf("a large message: %s", a)
	}
	w.Ack()
	proc.Happens(t, "the worker finds nothing to gain", trap.Caught())
	for range 5 {
		g.commit(session)
	}
	trap.Go()
	l.paid(t, node.URL)
	l.audit(t, node.URL)
}
