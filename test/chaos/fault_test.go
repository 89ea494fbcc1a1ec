package chaos

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/engined/engined/test/faults/pgproxy"
)

// fault is one way to break the cluster.
type fault struct {
	name string
	// on is what it breaks; two faults at one time break different things.
	on string
	// inject breaks it and returns what heals it. r is the fault's own chance.
	inject func(t *testing.T, c *cluster, r *rand.Rand) (heal func())
}

// faults are all of them. Those of servers are healed first: a process starts
// again once its servers do.
var faults = []fault{
	{"Postgres stops and starts", "postgres", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.pg.stop(t)
		return func() { c.pg.start(t) }
	}},
	{"Postgres is killed (-9)", "postgres", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.pg.kill(t)
		return func() { c.pg.start(t) }
	}},
	{"Postgres takes no connections (SIGSTOP of its postmaster)", "postgres", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.pg.signal(t, syscall.SIGSTOP)
		for _, m := range c.members() {
			m.pg.CutAll()
		}
		return func() { c.pg.signal(t, syscall.SIGCONT) }
	}},
	{"NATS stops and starts", "nats", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.nats.stop(t)
		return func() { c.nats.start(t, plenty) }
	}},
	{"NATS is killed (-9)", "nats", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.nats.kill(t)
		return func() { c.nats.start(t, plenty) }
	}},
	{"NATS loses its disk", "nats", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.nats.kill(t)
		c.nats.wipe(t)
		return func() { c.nats.start(t, plenty) }
	}},
	{"NATS is frozen (SIGSTOP)", "nats", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.nats.signal(t, syscall.SIGSTOP)
		return func() { c.nats.signal(t, syscall.SIGCONT) }
	}},
	{"NATS is full", "nats", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		c.nats.stop(t)
		c.nats.start(t, 1)
		return func() {
			c.nats.stop(t)
			c.nats.start(t, plenty)
		}
	}},
	{"connections to NATS are cut", "nats way", func(_ *testing.T, c *cluster, _ *rand.Rand) func() {
		c.natsWay.CutAll()
		return c.natsWay.CutAll
	}},
	{"a node is killed (-9)", "node", func(t *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.Kill(t)
		return func() { m.again(t) }
	}},
	{"all nodes are killed (-9)", "node", func(t *testing.T, c *cluster, _ *rand.Rand) func() {
		for _, m := range c.nodes {
			m.Kill(t)
		}
		return func() {
			for _, m := range c.nodes {
				m.again(t)
			}
		}
	}},
	{"a node is ended (SIGTERM)", "node", func(t *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.end(t)
		return func() { m.again(t) }
	}},
	{"a node is frozen (SIGSTOP)", "node", func(t *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.Signal(t, syscall.SIGSTOP)
		return func() { m.Signal(t, syscall.SIGCONT) }
	}},
	{"a worker is killed (-9)", "worker", func(t *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.workers, r)
		m.Kill(t)
		return func() { m.again(t) }
	}},
	{"a worker is frozen (SIGSTOP)", "worker", func(t *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.workers, r)
		m.Signal(t, syscall.SIGSTOP)
		return func() { m.Signal(t, syscall.SIGCONT) }
	}},
	{"the reply of an append's commit is lost", "node's Postgres", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		return trap(c, one(c.nodes, r).pg, pgproxy.After, "-- name: AppendEvents")
	}},
	{"an append is lost on its way", "node's Postgres", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		return trap(c, one(c.nodes, r).pg, pgproxy.Before, "-- name: AppendEvents")
	}},
	{"the reply of a compaction's commit is lost", "worker's Postgres", func(_ *testing.T, c *cluster, _ *rand.Rand) func() {
		return trapAny(c, pgproxy.After, "commit")
	}},
	{"a compaction is cut off within its commit", "worker's Postgres", func(_ *testing.T, c *cluster, _ *rand.Rand) func() {
		return trapAny(c, pgproxy.After, "-- name: LockSession")
	}},
	{"connections to Postgres are cut", "node's Postgres", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.members(), r)
		m.pg.CutAll()
		return m.pg.CutAll
	}},
	{"Postgres is slow", "postgres way", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.pg.Slow(time.Duration(20+r.IntN(60)) * time.Millisecond)
		return func() { m.pg.Slow(0) }
	}},
	{"answers to clients are lost", "front", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.front.DropAnswers(8)
		now := c.current
		return func() {
			if m.front.DropAnswers(0) == 8 {
				c.missed[now]++
			}
		}
	}},
	{"connections of clients are cut", "front", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.front.CutAll()
		return m.front.CutAll
	}},
	{"connections of clients are slow", "front", func(_ *testing.T, c *cluster, r *rand.Rand) func() {
		m := one(c.nodes, r)
		m.front.Slow(time.Duration(10+r.IntN(40)) * time.Millisecond)
		return func() { m.front.Slow(0) }
	}},
}

func one[T any](of []T, r *rand.Rand) T { return of[r.IntN(len(of))] }

// trap cuts the connection at the next such query, if one comes in time.
func trap(c *cluster, p *pgproxy.Proxy, m pgproxy.Moment, query string) func() {
	return traps(c, []*pgproxy.Proxy{p}, m, query, 0)
}

// trapAny cuts the connection of whichever worker comes first, and waits for
// that a while: compactions are rarer than writes.
func trapAny(c *cluster, m pgproxy.Moment, query string) func() {
	var all []*pgproxy.Proxy
	for _, w := range c.workers {
		all = append(all, w.pg)
	}
	return traps(c, all, m, query, 3*time.Second)
}

func traps(c *cluster, at []*pgproxy.Proxy, m pgproxy.Moment, query string, wait time.Duration) func() {
	now := c.current
	set := make([]*pgproxy.Trap, len(at))
	for i, p := range at {
		set[i] = p.Set(m, query)
		set[i].Cut()
	}
	return func() {
		caught := func() bool {
			return slices.ContainsFunc(set, func(t *pgproxy.Trap) bool {
				select {
				case <-t.Caught():
					return true
				default:
					return false
				}
			})
		}
		for until := time.Now().Add(wait); !caught() && time.Now().Before(until); {
			<-time.After(10 * time.Millisecond)
		}
		if !caught() {
			c.missed[now]++
		}
		for i, p := range at {
			p.Lift(set[i])
		}
	}
}
