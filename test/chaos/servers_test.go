package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/test/faults/proc"
)

// postgres is a server that comes back under the same address. It loses
// nothing when it is killed; when the machine is, it may.
type postgres struct {
	dir     string
	dsn     string
	cluster *devpg.Cluster
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "engined-chaos-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server's user must get in
		t.Fatal(err)
	}
	p := &postgres{dir: dir}
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

func (p *postgres) start(t *testing.T) {
	t.Helper()
	if p.cluster != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), proc.Patience)
	defer cancel()
	for {
		c, err := devpg.Start(ctx, devpg.Options{
			DataDir: filepath.Join(p.dir, "data"), SocketDir: filepath.Join(p.dir, "socket"),
			Settings: map[string]string{"fsync": "off", "max_wal_size": "256MB"},
		})
		if err == nil {
			p.cluster = c
			break
		}
		// The children of a killed postmaster take a moment to notice.
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	dsn, err := p.cluster.EnsureDatabase(ctx, "engined")
	if err != nil {
		t.Fatal(err)
	}
	p.dsn = dsn
}

// stop is an orderly end, also of one that is dead already.
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

func (p *postgres) pid(t *testing.T) int {
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
	return pid
}

func (p *postgres) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.pid(t), s); err != nil {
		t.Error(err)
	}
}

// kill ends the postmaster without a word; its children follow by themselves.
func (p *postgres) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	proc.Happens(t, "Postgres is gone", p.cluster.Done())
	p.stop(t)
}

// plenty is how much a NATS server may store when it is not to be full.
const plenty = 1 << 30

// natsServer is a NATS server in a process of its own.
type natsServer struct {
	dir, address string
	cmd          *exec.Cmd
	done         chan struct{}
}

func newNATS(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{dir: filepath.Join(t.TempDir(), "nats"), address: proc.Address(t)}
	n.start(t, plenty)
	t.Cleanup(func() { n.kill(t) })
	return n
}

func (n *natsServer) start(t *testing.T, most int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := proc.NewOutput()
	n.cmd = exec.Command(self)
	n.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", envNATS, n.dir, n.address, most))
	n.cmd.Stdout, n.cmd.Stderr = out, out
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done, cmd := make(chan struct{}), n.cmd
	n.done = done
	go func() {
		_ = cmd.Wait() // how it ended is the fault's business
		close(done)
	}()
	deadline := time.After(proc.Patience)
	for !strings.Contains(out.String(), "nats is ready") {
		select {
		case <-done:
			t.Fatalf("NATS ended at once: %s", out)
		case <-deadline:
			t.Fatalf("NATS is not ready: %s", out)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (n *natsServer) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

func (n *natsServer) stop(t *testing.T) {
	t.Helper()
	n.signal(t, syscall.SIGTERM)
	proc.Happens(t, "NATS ends", n.done)
}

func (n *natsServer) kill(t *testing.T) {
	t.Helper()
	n.signal(t, syscall.SIGKILL)
	proc.Happens(t, "NATS dies", n.done)
}

func (n *natsServer) wipe(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(n.dir); err != nil {
		t.Fatal(err)
	}
}
