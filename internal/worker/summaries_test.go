package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/summarizers"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

// withModel is a node whose summaries come from a fake provider.
func withModel(t *testing.T, url string) *node {
	t.Helper()
	return modelNode(t, testdb.New(t), bustest.Start(t), url, 0)
}

// modelNode is one of several on a database and a bus; a tenant may spend some
// dollars a day.
func modelNode(t *testing.T, database string, srv *bus.Embedded, url string, dollars float64) *node {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := bustest.Connect(t, srv)
	pub, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := summarizers.New(summarizers.Config{
		Specs: []summarizers.Spec{{Name: "m", Kind: summarizers.OpenAI, Model: "x", URL: url, Price: llm.Price{Input: 1, Output: 4}}}, Store: st,
		Gate: store.GatePolicy{Failures: 1000}, TenantLimit: dollars,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{store: st, bus: b}
	n.engine = engine.NewLossless(engine.Config{Log: st, Notifier: worker.NewNotifier(pub), Summarizers: set, LastResortAfter: 2})
	t.Cleanup(func() { _ = n.engine.Dispose(context.Background()) })
	quick := bus.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}
	n.worker = worker.New(worker.Config{
		Debts: st, Bus: b, Compactor: n.engine.Compactor, Name: t.Name(), Prepare: n.engine, SoftMilli: 680,
		Retry: quick, RedoInterval: 20 * time.Millisecond, RedoRetry: quick,
		SweepInterval: 50 * time.Millisecond, SweepLease: time.Second, RelayInterval: 50 * time.Millisecond,
		Consume: bus.ConsumeOptions{Backoff: quick},
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

func TestARuleWritesAfterTheTriesAndTheWorkerHasAModelRedoIt(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	srv := llmtest.OpenAI(t, func(_ int, r llmtest.Request) llmtest.Reply {
		if !up.Load() {
			return llmtest.Reply{Status: 503}
		}
		return llmtest.Reply{Text: llmtest.Summary(r.User, "x")}
	})
	n := withModel(t, srv.URL)
	n.turn(t, "k", 1)
	n.awaitPaid(t)
	if owed, err := n.store.OwedRedos(t.Context()); err != nil || owed != 1 {
		t.Fatalf("%d owed, %v", owed, err)
	}
	by := n.epoch(t, "k")
	if _, why := n.awaitAttempt(t, "k", "not written anew"); !strings.Contains(why.Err, "no summarizer gave a summary") {
		t.Errorf("why the summaries stay: %+v", why)
	}
	up.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		owed, err := n.store.OwedRedos(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if owed == 0 {
			break
		}
		<-tick.C
	}
	if e := n.epoch(t, "k"); e != by+1 {
		t.Errorf("epoch %d, then %d", by, e)
	}
}
