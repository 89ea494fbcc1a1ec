package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is what one process runs: a store, an engine, a bus connection, a worker.
type node struct {
	store  *store.Store
	engine *engine.Lossless
	worker *worker.Worker
	bus    *bus.Bus
}

const patience = 60 * time.Second

func start(t *testing.T, url string, srv *bus.Embedded, sum summarize.Summarizer) *node {
	t.Helper()
	ctx := t.Context()
	st, err := storetest.Open(t, ctx, store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := bustest.Connect(t, srv)
	pub, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{store: st, bus: b}
	n.engine = engine.NewLossless(engine.Config{Log: st, Notifier: worker.NewNotifier(pub), Summarizer: sum})
	t.Cleanup(func() { _ = n.engine.Dispose(context.Background()) })
	n.worker = worker.New(worker.Config{
		Debts: st, Bus: b, Compactor: n.engine.Compactor, Name: t.Name(),
		Retry:         bus.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		SweepInterval: 50 * time.Millisecond, SweepLease: time.Second, RelayInterval: 50 * time.Millisecond, ChildrenInterval: 20 * time.Millisecond,
		Consume: bus.ConsumeOptions{Backoff: bus.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}},
	})
	if err := n.worker.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.worker.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

// turn ends a turn that leaves the session over its threshold.
func (n *node) turn(t *testing.T, key string, i int) contextengine.AfterTurnResult {
	t.Helper()
	budget := 2000
	p := contextengine.AfterTurnParams{
		Session: contextengine.Session{Tenant: "t", SessionKey: key, SessionID: fmt.Sprint("turn", i)}, TokenBudget: &budget,
	}
	for j := range 10 {
		p.Messages = append(p.Messages,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"question %d.%d: %s"}`, i, j, strings.Repeat("what about the release and its notes? ", 12))),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"answer %d.%d: %s"}]}`, i, j, strings.Repeat("we decided to ship it on Friday. ", 14))))
	}
	res, err := n.engine.AfterTurn(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// awaitPaid waits until nothing is owed.
func (n *node) awaitPaid(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		owed, _, err := n.store.OwedCompactions(ctx)
		if err != nil {
			t.Fatalf("%d compactions still owed: %v", owed, err)
		}
		if owed == 0 {
			return
		}
		<-tick.C
	}
}

// attempts waits for the record of the compaction, which follows its commit,
// and answers with all records, newest first.
func (n *node) attempts(t *testing.T, key string) []store.Attempt {
	t.Helper()
	tries, _ := n.awaitAttempt(t, key, "compacted")
	return tries
}

// awaitAttempt waits for the record of an outcome, and answers with it and all
// records, newest first.
func (n *node) awaitAttempt(t *testing.T, key, outcome string) ([]store.Attempt, store.Attempt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := n.store.Session(ctx, "t", key)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		tries, err := n.store.Attempts(ctx, "t", s.SID, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range tries {
			if a.Outcome == outcome {
				return tries, a
			}
		}
		<-tick.C
	}
}

func (n *node) epoch(t *testing.T, key string) int64 {
	t.Helper()
	s, err := n.store.Session(t.Context(), "t", key)
	if err != nil {
		t.Fatal(err)
	}
	return s.Epoch
}

func TestTurnOverTheThresholdIsCompacted(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.New(t), bustest.Start(t), nil)
	if res := n.turn(t, "k", 1); res.Compaction != contextengine.CompactionScheduled {
		t.Fatalf("%+v", res)
	}
	n.awaitPaid(t)
	if e := n.epoch(t, "k"); e != 2 {
		t.Errorf("epoch %d, want 2", e)
	}
	compacted := 0
	for _, a := range n.attempts(t, "k") {
		if a.Outcome == "compacted" {
			compacted++
		}
	}
	if compacted != 1 {
		t.Errorf("compacted %d times", compacted)
	}
}

func TestNATSStoppedAndWipedCostsNoTurnAndNoCompaction(t *testing.T) {
	t.Parallel()
	srv := bustest.StartTCP(t)
	url := testdb.New(t)
	nodes := []*node{start(t, url, srv, nil), start(t, url, srv, nil)}
	const sessions = 12
	for i := range sessions {
		if i == sessions/3 {
			bustest.Stop(t, srv)
		}
		nodes[i%2].turn(t, fmt.Sprint("s", i), 1)
	}
	if err := srv.Wipe(); err != nil {
		t.Fatal(err)
	}
	bustest.Resume(t, srv)
	nodes[0].turn(t, "s0", 2)
	nodes[0].awaitPaid(t)
	for i := range sessions {
		if e := nodes[0].epoch(t, fmt.Sprint("s", i)); e < 2 {
			t.Errorf("s%d: epoch %d", i, e)
		}
	}
}

func TestFailingSummarizerIsTriedAgainAndDraftsAreReused(t *testing.T) {
	t.Parallel()
	sum := &flaky{failures: 3}
	n := start(t, testdb.New(t), bustest.Start(t), sum)
	n.turn(t, "k", 1)
	n.awaitPaid(t)
	if e := n.epoch(t, "k"); e != 2 {
		t.Errorf("epoch %d, want 2", e)
	}
	if tries := n.attempts(t, "k"); len(tries) < 2 || tries[len(tries)-1].Outcome != "failed" {
		t.Errorf("%+v", tries)
	}
}

func TestTwoWorkersStepTheEpochOnce(t *testing.T) {
	t.Parallel()
	srv := bustest.Start(t)
	url := testdb.New(t)
	a, b := start(t, url, srv, nil), start(t, url, srv, nil)
	res := a.turn(t, "k", 1)
	s, err := a.store.Session(t.Context(), "t", "k")
	if err != nil {
		t.Fatal(err)
	}
	// The same debt, published again and again under other attempts.
	for i := range 8 {
		n := []*node{a, b}[i%2]
		if err := n.bus.PublishJob(t.Context(), bus.Job{Tenant: "t", SID: s.SID.String(), Epoch: res.Epoch, Attempt: 100 + i}); err != nil {
			t.Fatal(err)
		}
	}
	a.awaitPaid(t)
	if e := a.epoch(t, "k"); e != 2 {
		t.Errorf("epoch %d, want 2", e)
	}
}

func TestRelayPublishesWhatNoNodeDid(t *testing.T) {
	t.Parallel()
	srv := bustest.Start(t)
	url := testdb.New(t)
	// An engine without a bus writes the turn; the relay of a worker tells.
	st, err := storetest.Open(t, t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	mute := engine.NewLossless(engine.Config{Log: st})
	t.Cleanup(func() { _ = mute.Dispose(context.Background()) })

	listener := bustest.Connect(t, srv)
	heard := make(chan bus.Notice, 16)
	if _, err := listener.Subscribe(t.Context(), bus.SubscribeOptions{}, func(n bus.Notice) { heard <- n }); err != nil {
		t.Fatal(err)
	}
	start(t, url, srv, nil)
	(&node{store: st, engine: mute}).turn(t, "k", 1)
	for {
		select {
		case n := <-heard:
			if n.Type == bus.TurnCompleted && n.Seq == 21 {
				return
			}
		case <-time.After(patience):
			t.Fatal("nothing was published")
		}
	}
}

var errDown = errors.New("provider is down")

// flaky fails a few times, then works.
type flaky struct {
	summarize.Extractive
	failures int32
}

func (f *flaky) Summarize(ctx context.Context, r summarize.Request) (summarize.Result, error) {
	if atomic.AddInt32(&f.failures, -1) >= 0 {
		return summarize.Result{}, errDown
	}
	return f.Extractive.Summarize(ctx, r)
}
