package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/engined/engined/test/faults/proc"

	"github.com/engined/engined/test/faults/audit"
)

// load is a number of gateways at work on the same nodes: each on a session of
// its own and all of them on a common one. A request without an answer is sent
// again, to another node, until it is acknowledged.
type load struct {
	rec  *audit.Recorder
	http *http.Client
	urls []string
	// strict: nothing may fail, not even for a moment. planned: what fails is what the
	// end of a node that was asked to end makes of a call: its connection is refused,
	// or one that had served calls before closes.
	strict, planned bool

	acked, again atomic.Int64

	mu       sync.Mutex
	troubles []string
}

func newLoad(t *testing.T, nodes ...*proc.Process) *load {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	l := &load{rec: audit.NewRecorder(), http: &http.Client{Transport: transport, Timeout: proc.Patience}}
	for _, n := range nodes {
		l.urls = append(l.urls, n.URL)
	}
	return l
}

// troublef notes what a client may not see.
func (l *load) troublef(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.troubles) < 20 {
		l.troubles = append(l.troubles, fmt.Sprintf(format, args...))
	}
}

// run starts gateways that work until ctx ends and finish what they have in
// hand. The returned function waits for them.
func (l *load) run(ctx context.Context, t *testing.T, gateways int) (wait func()) {
	t.Helper()
	var all sync.WaitGroup
	for i := range gateways {
		g := &gateway{load: l, id: i, rand: rand.New(rand.NewPCG(7420, uint64(i)))}
		all.Go(func() { g.work(ctx) })
	}
	return func() {
		t.Helper()
		all.Wait()
		for _, s := range l.troubles {
			t.Error(s)
		}
		t.Logf("%d writes acknowledged, %d sent again", l.acked.Load(), l.again.Load())
		if l.acked.Load() == 0 {
			t.Error("nothing was acknowledged at all")
		}
	}
}

// gateway is one client; its requests come one after the other.
type gateway struct {
	load *load
	id   int
	rand *rand.Rand
	made int
}

func (g *gateway) work(ctx context.Context) {
	for ctx.Err() == nil {
		session := fmt.Sprintf("agent:main:gateway:%d", g.id)
		if g.rand.IntN(3) == 0 {
			session = "agent:main:shared"
		}
		switch n := g.rand.IntN(10); {
		case n < 3:
			g.ingest(session)
		case n < 5:
			g.batch(session)
		case n < 7:
			g.commit(session)
		case n < 9:
			g.after(session)
		default:
			g.look(session)
		}
	}
}

func (g *gateway) ingest(session string) {
	m := g.user()
	w := g.load.rec.Begin(session, audit.Ingest, m)
	var res struct{ Seq int64 }
	if g.send(session, "ingest", object("message", m, "idempotencyKey", quote(g.name(0))), &res) {
		w.Ack(res.Seq)
	}
}

func (g *gateway) batch(session string) {
	ms := append(g.turn(), g.turn()...)
	keys := make([]string, len(ms))
	for i := range keys {
		keys[i] = g.name(i)
	}
	w := g.load.rec.Begin(session, audit.Batch, ms...)
	names, _ := json.Marshal(keys)
	var res struct{ Seqs []int64 }
	if g.send(session, "ingest-batch", object("messages", array(ms), "idempotencyKeys", names), &res) {
		if len(res.Seqs) != len(ms) {
			g.load.troublef("%d seqs for %d messages", len(res.Seqs), len(ms))
		}
		w.Ack(res.Seqs...)
	}
}

// turnAnswer is what commit-turn and after-turn answer.
type turnAnswer struct {
	Epoch      int64
	Compaction string
}

func (g *gateway) commit(session string) {
	ms := g.turn()
	w := g.load.rec.Begin(session, audit.Commit, ms...)
	var res turnAnswer
	if g.send(session, "commit-turn", object("advancementKey", quote(g.name(0)), "messages", array(ms), "tokenBudget", fmt.Append(nil, budget)), &res) {
		w.Ack()
		g.owes(session, res)
	}
}

func (g *gateway) after(session string) {
	ms := g.turn()
	w := g.load.rec.Begin(session, audit.After, ms...)
	var res turnAnswer
	body := object(
		"sessionId", quote(fmt.Sprintf("host-%d", g.id)), "prePromptMessageCount", []byte("1"), "tokenBudget", fmt.Append(nil, budget),
		"messages", array(append([][]byte{[]byte(`{"role":"user","content":"known"}`)}, ms...)),
	)
	if g.send(session, "after-turn", body, &res) {
		w.Ack()
		g.owes(session, res)
	}
}

func (g *gateway) owes(session string, res turnAnswer) {
	if res.Compaction != "none" {
		g.load.rec.Owes(session, res.Epoch)
	}
}

// look asks for a window, as the turn loop does before every model call.
func (g *gateway) look(session string) {
	var w audit.Window
	if g.send(session, "assemble", object("tokenBudget", fmt.Append(nil, budget)), &w) {
		for _, s := range audit.CheckWindow(w, budget) {
			g.load.troublef("%s: %s", session, s)
		}
	}
}

// send makes a call until it is answered with 200.
func (g *gateway) send(session, call string, body []byte, res any) bool {
	l := g.load
	deadline := time.Now().Add(proc.Patience)
	at := g.rand.IntN(len(l.urls))
	for try := 0; time.Now().Before(deadline); try++ {
		if try > 0 {
			l.again.Add(1)
			<-time.After(25 * time.Millisecond) // the pace of the retries
		}
		a := l.post(context.Background(), l.urls[(at+try)%len(l.urls)], session, call, body)
		switch {
		case a.err == nil && a.status == http.StatusOK:
			if err := json.Unmarshal(a.body, res); err != nil {
				l.troublef("%s answered %.200s: %v", call, a.body, err)
			}
			l.acked.Add(1)
			return true
		case l.strict:
			l.troublef("%s failed: %s", call, a)
		case a.err != nil && l.planned && !a.reused && !errors.Is(a.err, syscall.ECONNREFUSED):
			l.troublef("%s failed on a new connection: %s", call, a)
		case a.err != nil:
		case a.status == http.StatusServiceUnavailable && a.retryAfter != "":
		default:
			l.troublef("%s failed: %s", call, a)
			if a.status/100 == 4 {
				return false
			}
		}
	}
	l.troublef("%s of %s was never acknowledged", call, session)
	return false
}

// name is the key of the message i of the request in hand.
func (g *gateway) name(i int) string { return fmt.Sprintf("g%d-%d-%d", g.id, g.made, i) }

// user is one message. Its bytes are no canonical JSON, and nobody's but its own.
func (g *gateway) user() []byte {
	g.made++
	return g.say("user", 0)
}

func (g *gateway) say(role string, i int) []byte {
	words := strings.Repeat(fmt.Sprintf("the build of module %d took 1.50e1 s \\u00e9 <b>&amp;</b> ", g.rand.IntN(100)), 2+g.rand.IntN(4))
	return fmt.Appendf(nil, `{ "content":"%s: %s" ,"role":%q}`, g.name(i), words, role)
}

// turn is a user's question, a tool call, its result and an answer.
func (g *gateway) turn() [][]byte {
	g.made++
	id := "call-" + g.name(1)
	return [][]byte{
		g.say("user", 0),
		fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":"{\"path\":\"/srv/%s.go\"}"}}]}`, id, id),
		fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":"package main // %s"}`, id, strings.Repeat(id+" ", 10)),
		g.say("assistant", 3),
	}
}

// object writes JSON from names and raw values, whose bytes stay as they are.
func object(pairs ...any) []byte {
	out := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `%q:%s`, pairs[i], pairs[i+1])
	}
	return append(out, '}')
}

func array(items [][]byte) []byte {
	return slices.Concat([]byte{'['}, []byte(strings.Join(texts(items), ",")), []byte{']'})
}

func texts(items [][]byte) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = string(items[i])
	}
	return out
}

func quote(s string) []byte { return fmt.Appendf(nil, "%q", s) }
