package faults

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/pgproxy"
)

// TestWorkersAreKilledUnderLoad kills workers while sessions owe compactions,
// and asks some to end: each compaction happens, once.
func TestWorkersAreKilledUnderLoad(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	workers := []*proc.Process{s.worker(t, "worker 1"), s.worker(t, "worker 2")}
	l := newLoad(t, node)
	l.strict = true

	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	wait := l.run(ctx, t, 4)
	kills := 0
	for ; ctx.Err() == nil; kills++ {
		i := kills % len(workers)
		l.progress(ctx, t, 5+rand.Int64N(40))
		if kills%3 == 2 {
			workers[i].End(t)
		} else {
			workers[i].Kill(t)
		}
		l.progress(ctx, t, rand.Int64N(20))
		workers[i] = workers[i].Again(t)
	}
	wait()
	t.Logf("%d kills", kills)
	l.settle(t, node.URL)
	l.audit(t, node.URL)
	node.Quiet(t)
}

// owing makes a session owe a compaction.
func owing(t *testing.T, l *load, session string) *gateway {
	t.Helper()
	g := &gateway{load: l, id: int(l.acked.Load()) + 1, rand: rand.New(rand.NewPCG(7420, 1))}
	for l.rec.Owed(session) == 0 {
		before := l.acked.Load()
		if g.commit(session); l.acked.Load() == before {
			t.Fatalf("turns are not stored: %v", l.troubles)
		}
	}
	return g
}

// TestAWorkerDiesAtEveryPoint kills a worker, or breaks its connection to
// Postgres, at each point of a compaction. Another one pays what is owed; the
// epoch steps once.
func TestAWorkerDiesAtEveryPoint(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	l := newLoad(t, node)
	l.strict = true
	proxy := newProxy(t, s.db)
	for _, tc := range []struct {
		name   string
		moment pgproxy.Moment
		query  string
	}{
		{"before it reads the session", pgproxy.Before, "-- name: SessionBySID"},
		{"before a draft is kept", pgproxy.Before, "-- name: PutDraft"},
		{"when a draft is kept", pgproxy.After, "-- name: PutDraft"},
		{"before it locks the session", pgproxy.Before, "-- name: LockSession"},
		{"with the session locked", pgproxy.After, "-- name: LockSession"},
		{"with the summaries appended", pgproxy.After, "-- name: AppendEvents"},
		{"before the commit", pgproxy.Before, "commit"},
		{"when it is committed", pgproxy.After, "commit"},
		{"before the attempt is recorded", pgproxy.Before, "-- name: RecordAttempt"},
	} {
		for _, kill := range []bool{true, false} {
			name := tc.name + ", cut off"
			if kill {
				name = tc.name + ", killed"
			}
			t.Run(name, func(t *testing.T) {
				first := s.workerOn(t, "worker 1", proxy.DSN())
				trap := proxy.Set(tc.moment, tc.query)
				session := "agent:main:" + name
				owing(t, l, session)
				proc.Happens(t, "the worker comes to the point", trap.Caught())
				if kill {
					first.Kill(t)
				}
				trap.Cut()
				second := first
				if kill {
					second = s.worker(t, "worker 2")
				}
				await(t, "the debt is paid", func() bool {
					row := l.session(t, node.URL, session)
					return row.Debt == 0 && row.Epoch > 1
				})
				second.Kill(t)
				rows := l.log(t, node.URL, session)
				if n := strings.Count(types(rows), "epoch.rotated"); n != 1 {
					t.Errorf("%d steps: %s", n, types(rows))
				}
				for _, s := range audit.Check(l.rec, session, rows) {
					t.Error(s)
				}
			})
		}
	}
}

func types(rows []audit.Row) string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Type
	}
	return strings.Join(out, " ")
}

func newProxy(t *testing.T, dsn string) *pgproxy.Proxy {
	t.Helper()
	p, err := pgproxy.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestAPausedWorkerCommitsTooLate stops a worker that is about to commit for
// longer than its job waits for it. Another one does the job; what the first
// one had planned is refused when it wakes.
func TestAPausedWorkerCommitsTooLate(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	l := newLoad(t, node)
	l.strict = true
	proxy := newProxy(t, s.db)
	first := s.workerOn(t, "worker 1", proxy.DSN())
	trap := proxy.Set(pgproxy.Before, "-- name: LockSession")
	const session = "agent:main:paused"
	g := owing(t, l, session)
	proc.Happens(t, "the worker is about to commit", trap.Caught())
	first.Signal(t, syscall.SIGSTOP)
	s.worker(t, "worker 2")
	await(t, "the other worker commits", func() bool {
		row := l.session(t, node.URL, session)
		return row.Epoch == 2 && row.Debt == 0
	})
	g.commit(session) // life goes on
	trap.Go()
	first.Signal(t, syscall.SIGCONT)
	await(t, "the first worker tells that it lost", func() bool {
		for _, a := range l.session(t, node.URL, session).Attempts {
			if a.Outcome == "lost the race" && a.Epoch == 1 {
				return true
			}
		}
		return false
	})
	rows := l.log(t, node.URL, session)
	if n := strings.Count(types(rows), "epoch.rotated"); n != 1 {
		t.Errorf("%d steps: %s", n, types(rows))
	}
	l.audit(t, node.URL)
}

// TestAWorkerPausedWithinItsCommit stops a worker that holds a session's lock.
// Turns of that session wait until Postgres takes the lock away; they are
// stored all the same, and others do not wait.
func TestAWorkerPausedWithinItsCommit(t *testing.T) {
	begin(t)
	s := newStack(t)
	node := s.node(t, "node")
	l := newLoad(t, node)
	l.strict = true
	proxy := newProxy(t, s.db)
	first := s.workerOn(t, "worker 1", proxy.DSN())
	trap := proxy.Set(pgproxy.After, "-- name: LockSession")
	const session = "agent:main:locked"
	g := owing(t, l, session)
	proc.Happens(t, "the worker holds the session", trap.Caught())
	first.Signal(t, syscall.SIGSTOP)
	g.commit("agent:main:other")
	g.commit(session)
	s.worker(t, "worker 2")
	await(t, "the other worker commits", func() bool {
		row := l.session(t, node.URL, session)
		return row.Epoch == 2 && row.Debt == 0
	})
	trap.Go()
	first.Signal(t, syscall.SIGCONT)
	g.commit(session)
	for _, trouble := range l.troubles {
		t.Error(trouble)
	}
	l.audit(t, node.URL)
}
