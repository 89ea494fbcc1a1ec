package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/hooks"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

// Each compaction is told of twice on a real bus, however it ends, also where
// another notice has the same seq and where it is tried again at once.
func TestCompactionsAreToldOnTheBus(t *testing.T) {
	t.Parallel()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := bustest.Connect(t, bustest.Start(t))
	pub, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan bus.Notice, 64)
	if _, err := b.Subscribe(t.Context(), bus.SubscribeOptions{}, func(n bus.Notice) { told <- n }); err != nil {
		t.Fatal(err)
	}
	notifier := worker.NewNotifier(pub)
	h := hooks.New(hooks.Config{Bus: notifier})
	t.Cleanup(func() { _ = h.Stop(context.WithoutCancel(t.Context())) })
	broken := &flaky{failures: 1 << 20}
	e := engine.NewLossless(engine.Config{Log: st, Notifier: notifier, Hooks: h, Summarizer: broken})
	t.Cleanup(func() { _ = e.Dispose(context.WithoutCancel(t.Context())) })
	n := &node{store: st, engine: e, bus: b}
	n.turn(t, "s", 1)
	budget := 2000
	p := contextengine.CompactParams{
		Session: contextengine.Session{Tenant: "t", SessionKey: "s"}, TokenBudget: &budget, Force: true,
	}
	for range 2 {
		if _, err := e.Compact(t.Context(), p); err == nil {
			t.Fatal("compacted without a summary")
		}
	}
	atomic.StoreInt32(&broken.failures, 0)
	if res, err := e.Compact(t.Context(), p); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	var got []string
	for len(got) < 8 {
		select {
		case n := <-told:
			got = append(got, string(n.Type))
		case <-time.After(patience):
			t.Fatalf("told of %v", got)
		}
	}
	want := []string{
		"turn_completed", "compaction_starting", "compaction_finished", "compaction_starting", "compaction_finished",
		"compaction_starting", "epoch_rotated", "compaction_finished",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
