package faults

import (
	"cmp"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/test/faults/proc"
)

// envPrevious is the commit that a rollout starts from.
const envPrevious = "ENGINED_ROLLING_PREV"

// TestRollingUpgrade replaces the version before by this one under load, as
// docs/operations.md tells operators to: the schema first, with the new program,
// while the old one works; then node by node and the worker. Clients see what a
// planned end shows them and nothing else.
func TestRollingUpgrade(t *testing.T) {
	begin(t)
	ref := cmp.Or(os.Getenv(envPrevious), proc.NewestTag(t.Context()))
	if ref == "" {
		t.Skipf("no version before this one: the history has no tag; set %s to a commit", envPrevious)
	}
	old := proc.Previous(t, ref)
	s := &stack{db: testdb.Empty(t), nats: newNATS(t)}
	launch := func(name string, args ...string) *proc.Process {
		p := proc.LaunchOther(t, old, name, args...)
		p.Ready(t)
		return p
	}
	workerArgs := append(append([]string{"worker"}, s.common(s.db)...), "--sweep-interval", "500ms", "--sweep-lease", "2s")
	nodes := []*proc.Process{launch("old node 1", s.nodeArgs(t, s.db)...), launch("old node 2", s.nodeArgs(t, s.db)...)}
	worker := launch("old worker", workerArgs...)
	before := applied(t, s.db)

	l := newLoad(t, nodes...)
	l.planned = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := l.run(ctx, t, 4)
	progress := func(when string) {
		t.Helper()
		from := l.acked.Load()
		await(t, when, func() bool { return l.acked.Load() >= from+100 })
	}
	progress("the old version works")

	migrate := proc.Launch(t, "migration", "migrate", "up", "--database-url", s.db)
	if code := migrate.ExitCode(t); code != 0 {
		t.Fatalf("migrating under load: exit code %d\n%s", code, migrate.Out)
	}
	progress("the old version works on the newer schema")
	if now := applied(t, s.db); now > before {
		late := proc.LaunchOther(t, old, "late old node", s.nodeArgs(t, s.db)...)
		if code := late.ExitCode(t); code == 0 || !strings.Contains(late.Out.String(), "newer than this program") {
			t.Errorf("an old node starts on a newer schema: exit code %d\n%s", code, late.Out)
		}
		t.Logf("%s: schema %d, now %d", ref, before, now)
	}

	for i, n := range nodes {
		end(t, n)
		nodes[i] = proc.Start(t, strings.Replace(n.Name, "old", "new", 1), n.Args...)
		progress("old and new version work side by side")
	}
	next := proc.Start(t, "new worker", workerArgs...)
	end(t, worker)
	progress("the new version works")
	stop()
	wait()
	l.settle(t, nodes[0].URL)
	for _, n := range nodes {
		l.audit(t, n.URL)
		n.Quiet(t)
	}
	next.Quiet(t)
	verify := proc.Launch(t, "doctor", "doctor", "--verify", "--database-url", s.db)
	if code := verify.ExitCode(t); code != 0 {
		t.Errorf("doctor --verify: exit code %d\n%s", code, verify.Out)
	}
}

// end asks a process of the old version to end. What it logs is its own.
func end(t *testing.T, p *proc.Process) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("%s: exit code %d\n%s", p.Name, code, p.Out.Tail(20))
	}
}

// applied is the version of a database's schema.
func applied(t *testing.T, url string) (version int64) {
	t.Helper()
	all, err := store.Migrations(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Applied {
			version = max(version, m.Version)
		}
	}
	return version
}
