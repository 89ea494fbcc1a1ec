package faults

import (
	"context"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/testdb"
)

// budget is the token budget of every session here: small, so that sessions
// owe compactions every few turns.
const budget = 3000

// stack is what the processes of a test share.
type stack struct {
	db   string
	nats *bus.Embedded
}

// newStack is a database and a NATS server of its own.
func newStack(t *testing.T) *stack {
	t.Helper()
	return &stack{db: testdb.New(t), nats: newNATS(t)}
}

func newNATS(t *testing.T) *bus.Embedded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proc.Patience)
	defer cancel()
	e, err := bus.StartEmbedded(ctx, bus.EmbeddedOptions{StoreDir: t.TempDir(), Listen: proc.Address(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bustest.Stop(t, e) })
	return e
}

func (s *stack) common(db string) []string {
	return []string{"--database-url", db, "--nats-url", s.nats.URL(), "--log-level", "warn"}
}

// node starts a node and waits until it serves.
func (s *stack) node(t *testing.T, name string, args ...string) *proc.Process {
	t.Helper()
	return proc.Start(t, name, s.nodeArgs(t, s.db, args...)...)
}

func (s *stack) nodeArgs(t *testing.T, db string, args ...string) []string {
	t.Helper()
	return append(append([]string{"serve", "--insecure", "--listen", proc.Address(t)}, s.common(db)...), args...)
}

// worker starts a worker that notices lost jobs and debts soon.
func (s *stack) worker(t *testing.T, name string, args ...string) *proc.Process {
	t.Helper()
	return s.workerOn(t, name, s.db, args...)
}

func (s *stack) workerOn(t *testing.T, name, db string, args ...string) *proc.Process {
	t.Helper()
	all := append(append([]string{"worker"}, s.common(db)...), "--ack-wait", "1s", "--sweep-interval", "500ms", "--sweep-lease", "2s")
	return proc.Start(t, name, append(all, args...)...)
}
