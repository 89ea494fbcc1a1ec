package chaos

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/engined/engined/test/faults/pgproxy"
	"github.com/engined/engined/test/faults/proc"
	"github.com/engined/engined/test/faults/tcpproxy"
)

const (
	nodeCount   = 2
	workerCount = 2
	// budget is the token budget of every session: small, so that sessions owe
	// compactions every few turns.
	budget = 3000
)

// member is a node or a worker with what stands around it.
type member struct {
	*proc.Process

	pg    *pgproxy.Proxy
	front *tcpproxy.Proxy // of a node: what its clients talk to
	url   string          // of a node: through front
}

// cluster is everything that can be broken.
type cluster struct {
	pg      *postgres
	nats    *natsServer
	natsWay *tcpproxy.Proxy
	nodes   []*member
	workers []*member
	// current is the fault that is being injected; missed counts those that found
	// nothing to break.
	current int
	missed  map[int]int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{missed: make(map[int]int), pg: newPostgres(t), nats: newNATS(t)}
	c.natsWay = front(t, c.nats.address)
	for i := range nodeCount {
		m := &member{pg: c.proxy(t)}
		address := proc.Address(t)
		m.front = front(t, address)
		m.url = "http://" + m.front.Addr()
		m.Process = proc.Start(t, fmt.Sprintf("node %d", i+1), c.args("serve", m, "--insecure", "--listen", address)...)
		c.nodes = append(c.nodes, m)
	}
	for i := range workerCount {
		m := &member{pg: c.proxy(t)}
		m.Process = proc.Start(t, fmt.Sprintf("worker %d", i+1), c.args("worker", m)...)
		c.workers = append(c.workers, m)
	}
	return c
}

func (c *cluster) args(command string, m *member, more ...string) []string {
	return append([]string{
		command, "--database-url", m.pg.DSN(), "--nats-url", "nats://" + c.natsWay.Addr(), "--log-level", "warn",
		"--ack-wait", "1s", "--sweep-interval", "300ms", "--sweep-lease", "1s", "--shutdown-grace", "5s",
	}, more...)
}

func (c *cluster) proxy(t *testing.T) *pgproxy.Proxy {
	t.Helper()
	p, err := pgproxy.New(t.Context(), c.pg.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func front(t *testing.T, target string) *tcpproxy.Proxy {
	t.Helper()
	p, err := tcpproxy.New(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// end asks a member to end. Under faults it may warn, and may not get to the
// end of its grace.
func (m *member) end(t *testing.T) {
	t.Helper()
	m.Signal(t, syscall.SIGTERM)
	proc.Happens(t, m.Name+" ends", m.Done)
}

// again starts a member anew where it was, if it has ended.
func (m *member) again(t *testing.T) {
	t.Helper()
	select {
	case <-m.Done:
		m.Process = m.Process.Again(t)
	default:
	}
}

func (c *cluster) members() []*member { return append(append([]*member{}, c.nodes...), c.workers...) }
