package faults

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/pgproxy"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(7420, 0)) }

// request is a write as it goes over the wire, and how its answer says that it
// was stored before.
type request struct {
	name, call string
	make       func(g *gateway) (kind audit.Kind, messages [][]byte, body []byte)
	duplicate  string
}

func requests() []request {
	return []request{
		{"ingest", "ingest", func(g *gateway) (audit.Kind, [][]byte, []byte) {
			m := g.user()
			return audit.Ingest, [][]byte{m}, object("message", m, "idempotencyKey", quote(g.name(0)))
		}, `"duplicate":true`},
		{"batch", "ingest-batch", func(g *gateway) (audit.Kind, [][]byte, []byte) {
			ms := g.turn()
			keys, _ := json.Marshal([]string{g.name(0), g.name(1), g.name(2), g.name(3)})
			return audit.Batch, ms, object("messages", array(ms), "idempotencyKeys", keys)
		}, `"ingestedCount":0`},
		{"commit", "commit-turn", func(g *gateway) (audit.Kind, [][]byte, []byte) {
			ms := g.turn()
			return audit.Commit, ms, object("advancementKey", quote(g.name(0)), "messages", array(ms))
		}, `"status":"duplicate"`},
		{"after", "after-turn", func(g *gateway) (audit.Kind, [][]byte, []byte) {
			ms := g.turn()
			return audit.After, ms, object("sessionId", quote("host"), "prePromptMessageCount", []byte("0"), "messages", array(ms))
		}, `"ingestedCount":0`},
	}
}

// seqs are the seqs that an answer tells.
func (a answer) seqs(t *testing.T) []int64 {
	t.Helper()
	var res struct {
		Seq  int64
		Seqs []int64
	}
	if err := json.Unmarshal(a.body, &res); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if res.Seq > 0 {
		return []int64{res.Seq}
	}
	return res.Seqs
}

// TestTheReplyOfANodeIsLost cuts the connection between client and node when
// the node has answered: the retry is told where the first try stands.
func TestTheReplyOfANodeIsLost(t *testing.T) {
	begin(t)
	s := newStack(t)
	node, other := s.node(t, "node 1"), s.node(t, "node 2")
	cut := newCutter(t, strings.TrimPrefix(node.URL, "http://"))
	l := newLoad(t, node)
	g := &gateway{load: l, rand: newRand()}
	for _, retryAt := range []string{cut.url(), other.URL} {
		for _, r := range requests() {
			session := "agent:main:" + r.name
			kind, ms, body := r.make(g)
			w := l.rec.Begin(session, kind, ms...)
			cut.armed.Store(true)
			if a := l.post(t.Context(), cut.url(), session, r.call, body); a.err == nil {
				t.Fatalf("%s: the reply was not lost: %s", r.name, a)
			}
			again := l.post(t.Context(), retryAt, session, r.call, body)
			if again.status != http.StatusOK || !strings.Contains(string(again.body), r.duplicate) {
				t.Errorf("%s: the retry answers %s, not %s", r.name, again, r.duplicate)
				continue
			}
			w.Ack(again.seqs(t)...)
		}
	}
	l.audit(t, other.URL)
}

// TestTheReplyOfPostgresIsLost cuts the node's connection to Postgres when the
// append is committed, or before it is sent. The node cannot know which; it
// answers 503, and the retry finds out.
func TestTheReplyOfPostgresIsLost(t *testing.T) {
	begin(t)
	s := newStack(t)
	proxy := newProxy(t, s.db)
	node := proc.Start(t, "node", s.nodeArgs(t, proxy.DSN())...)
	l := newLoad(t, node)
	g := &gateway{load: l, rand: newRand()}
	for _, moment := range []pgproxy.Moment{pgproxy.After, pgproxy.Before} {
		for _, r := range requests() {
			session := "agent:main:" + r.name
			kind, ms, body := r.make(g)
			w := l.rec.Begin(session, kind, ms...)
			trap := proxy.Set(moment, "-- name: AppendEvents")
			trap.Cut()
			a := l.post(t.Context(), node.URL, session, r.call, body)
			if a.status != http.StatusServiceUnavailable || a.retryAfter == "" {
				t.Errorf("%s: a lost connection answers %s", r.name, a)
			}
			again := l.post(t.Context(), node.URL, session, r.call, body)
			if again.status != http.StatusOK || strings.Contains(string(again.body), r.duplicate) != (moment == pgproxy.After) {
				t.Errorf("%s: the retry answers %s", r.name, again)
				continue
			}
			w.Ack(again.seqs(t)...)
		}
	}
	l.audit(t, node.URL)
}

// TestTwoWritersExpectTheSameHead at two nodes: one writes, the other is told.
func TestTwoWritersExpectTheSameHead(t *testing.T) {
	begin(t)
	s := newStack(t)
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	l := newLoad(t, nodes...)
	g := &gateway{load: l, rand: newRand()}
	const session = "agent:main:contended"
	g.commit(session)
	head := l.session(t, nodes[0].URL, session).Head
	for range 25 {
		var all sync.WaitGroup
		var answers [2]answer
		for i, n := range nodes {
			m := g.user()
			w := l.rec.Begin(session, audit.Ingest, m)
			expected, _ := json.Marshal(head)
			all.Go(func() {
				answers[i] = l.post(t.Context(), n.URL, session, "ingest", object("message", m, "expectedHead", expected))
				switch answers[i].status {
				case http.StatusOK:
					w.Ack()
				case http.StatusPreconditionFailed:
					w.Refuse()
				}
			})
		}
		all.Wait()
		if got := answers[0].status + answers[1].status; got != http.StatusOK+http.StatusPreconditionFailed {
			t.Fatalf("both expected head %d:\n%s\n%s", head, answers[0], answers[1])
		}
		head++
		for _, a := range answers {
			var told struct{ Head int64 }
			if err := json.Unmarshal(a.body, &told); err != nil || told.Head != head {
				t.Errorf("told head %d, it is %d: %s", told.Head, head, a)
			}
		}
	}
	l.audit(t, nodes[1].URL)
}

// TestTheSameRequestComesToTwoNodesAtOnce, as impatient clients send it: it is
// stored once, and both answers say where.
func TestTheSameRequestComesToTwoNodesAtOnce(t *testing.T) {
	begin(t)
	s := newStack(t)
	nodes := []*proc.Process{s.node(t, "node 1"), s.node(t, "node 2")}
	l := newLoad(t, nodes...)
	g := &gateway{load: l, rand: newRand()}
	for range 10 {
		for _, r := range requests() {
			session := "agent:main:" + r.name
			kind, ms, body := r.make(g)
			w := l.rec.Begin(session, kind, ms...)
			var all sync.WaitGroup
			var answers [2]answer
			for i, n := range nodes {
				all.Go(func() { answers[i] = l.post(t.Context(), n.URL, session, r.call, body) })
			}
			all.Wait()
			duplicates := 0
			for _, a := range answers {
				if a.status != http.StatusOK {
					t.Fatalf("%s: %s", r.name, a)
				}
				if strings.Contains(string(a.body), r.duplicate) {
					duplicates++
				}
			}
			if duplicates != 1 || !slices.Equal(answers[0].seqs(t), answers[1].seqs(t)) {
				t.Errorf("%s is told as\n%s\n%s", r.name, answers[0], answers[1])
			}
			w.Ack(answers[0].seqs(t)...)
		}
	}
	l.audit(t, nodes[1].URL)
}

// cutter is a TCP proxy that, once armed, breaks a connection instead of
// passing on the next reply.
type cutter struct {
	target   string
	listener net.Listener
	armed    atomic.Bool
	running  sync.WaitGroup
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{target: target, listener: listener}
	ctx, stop := context.WithCancel(context.Background())
	c.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.serve(ctx, client) })
		}
	})
	t.Cleanup(func() {
		stop()
		listener.Close()
		c.running.Wait()
	})
	return c
}

func (c *cutter) url() string { return "http://" + c.listener.Addr().String() }

func (c *cutter) serve(ctx context.Context, client net.Conn) {
	node, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.target)
	if err != nil {
		client.Close()
		return
	}
	defer context.AfterFunc(ctx, func() { client.Close(); node.Close() })()
	var pair sync.WaitGroup
	pair.Go(func() {
		defer node.Close()
		_, _ = io.Copy(node, client) // the end of either ends both
	})
	defer pair.Wait()
	defer client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := node.Read(buf)
		if err != nil || c.armed.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
