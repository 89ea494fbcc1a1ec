package faults

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/test/faults/proc"
)

// TestPostgresRestartsUnderLoad ends Postgres under load, by turns in order and
// by a crash: calls answer 503 with a hint when to come back, nothing
// acknowledged is lost, and nodes and workers find back by themselves.
func TestPostgresRestartsUnderLoad(t *testing.T) {
	begin(t)
	pg := newPostgres(t)
	s := &stack{db: pg.start(t), nats: newNATS(t)}
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	s.worker(t, "worker")
	l := newLoad(t, nodes...)

	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	wait := l.run(ctx, t, 4)
	restarts := 0
	for ; ctx.Err() == nil || restarts < 2; restarts++ {
		l.progress(ctx, t, 50)
		if restarts%2 == 0 {
			pg.crash(t)
		}
		pg.stop(t)
		var late *proc.Process
		if restarts == 0 {
			late = proc.Launch(t, "node 3", s.nodeArgs(t, s.db)...)
		}
		pg.start(t)
		if late != nil {
			late.Ready(t) // a node may start before its Postgres does
		}
	}
	wait()
	t.Logf("%d restarts", restarts)
	l.settle(t, nodes[0].URL)
	l.audit(t, nodes[1].URL)
}

// postgres is a durable server that comes back under the same address.
type postgres struct {
	dir     string
	cluster *devpg.Cluster
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "engined-faults-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server's user must get in
		t.Fatal(err)
	}
	p := &postgres{dir: dir}
	t.Cleanup(func() { p.stop(t) })
	return p
}

func (p *postgres) start(t *testing.T) (dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proc.Patience)
	defer cancel()
	var err error
	p.cluster, err = devpg.Start(ctx, devpg.Options{DataDir: filepath.Join(p.dir, "data"), SocketDir: filepath.Join(p.dir, "socket")})
	if err != nil {
		t.Fatal(err)
	}
	if dsn, err = p.cluster.EnsureDatabase(ctx, "engined"); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// stop is an orderly end.
func (p *postgres) stop(t *testing.T) {
	t.Helper()
	if p.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), proc.Patience)
	defer cancel()
	if err := p.cluster.Stop(ctx); err != nil {
		t.Error(err)
	}
	p.cluster = nil
}

// crash ends the server at once; the next start recovers from its log.
func (p *postgres) crash(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.cluster.Dir(), "pgdata", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	proc.Happens(t, "Postgres is gone", p.cluster.Done())
}
