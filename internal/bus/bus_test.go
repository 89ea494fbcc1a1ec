package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
)

const patience = 30 * time.Second

func newJob() bus.Job { return bus.Job{Tenant: "default", SID: uuid.NewString(), Epoch: 1} }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for one value and fails the test when none comes.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func mustPublish(t *testing.T, b *bus.Bus, jobs ...bus.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := b.PublishJob(testContext(t), j); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
}

func consume(t *testing.T, b *bus.Bus, opts bus.ConsumeOptions, h bus.Handler) *bus.Consumer {
	t.Helper()
	opts.Durable = bus.CompactorDurable
	if opts.Backoff == (bus.Backoff{}) {
		opts.Backoff = bus.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}
	}
	c, err := b.ConsumeJobs(context.Background(), opts, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await polls a condition that has no event of its own.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestPublishAndConsume(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *bus.Embedded{"in process": bustest.Start, "tcp": bustest.StartTCP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			b := bustest.Connect(t, e)
			if url := e.URL(); url != "" {
				var err error
				if b, err = bus.Connect(testContext(t), bus.Options{URL: url}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Close(context.Background()) })
			}
			if ok, detail := b.Healthy(); !ok {
				t.Fatalf("not healthy after Connect: %s", detail)
			}
			want := map[bus.Job]int{}
			for i := range 50 {
				j := newJob()
				j.Attempt = i
				want[j] = 1
				mustPublish(t, b, j)
			}
			got := make(chan bus.Job, 100)
			c := consume(t, b, bus.ConsumeOptions{}, func(_ context.Context, j bus.Job, d bus.Delivery) error {
				if d.Count != 1 || d.Max != 6 || d.PublishedAt.IsZero() {
					t.Errorf("delivery %+v", d)
				}
				got <- j
				return nil
			})
			seen := map[bus.Job]int{}
			for range want {
				seen[receive(t, got, "job")]++
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
			for range 2 {
				if err := c.Stop(testContext(t)); err != nil {
					t.Errorf("stop: %v", err)
				}
			}
			if s := b.Stats(); s.Acked != 50 || s.Redelivered != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestDeduplication(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t, bustest.Start(t))
	j := newJob()
	again := j
	again.Attempt = 1
	mustPublish(t, b, j, j, again)
	got := make(chan bus.Job, 10)
	consume(t, b, bus.ConsumeOptions{Concurrency: 1}, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
		got <- j
		return nil
	})
	receive(t, got, "first job")
	// A copy of a job that is already done is swallowed as well.
	await(t, "ack", func() bool { return b.Stats().Acked > 0 })
	last := newJob()
	mustPublish(t, b, j, last)
	if diff := cmp.Diff([]bus.Job{again, last}, []bus.Job{receive(t, got, "re-send"), receive(t, got, "last job")}); diff != "" {
		t.Error(diff)
	}
	if s := b.Stats(); s.Duplicates != 2 {
		t.Errorf("duplicates = %d, want 2", s.Duplicates)
	}
}

func TestMalformedMessagesAreThrownAway(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	nc, err := nats.Connect("", nats.InProcessServer(e))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, data := range []string{"", "content of a session", `{"v":1}`, `{"v":99}`} {
		if _, err := nc.Request("engined.job.compact.0", []byte(data), patience); err != nil {
			t.Fatal(err)
		}
	}
	good := newJob()
	mustPublish(t, b, good)
	got := make(chan bus.Job, 1)
	consume(t, b, bus.ConsumeOptions{MaxDeliver: 3}, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
		got <- j
		return nil
	})
	if j := receive(t, got, "good job"); j != good {
		t.Errorf("got %+v", j)
	}
	await(t, "all four thrown away", func() bool { return b.Stats().Malformed == 4 })
	// Only the newer version was left to others, until its last chance.
	if s := b.Stats(); s.Retried != 1 {
		t.Errorf("retried = %d, want 1", s.Retried)
	}
}

func TestPublishRefusesAndFailsFast(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	if err := b.PublishJob(testContext(t), bus.Job{Tenant: "a", SID: "main"}); !errors.Is(err, bus.ErrMalformed) {
		t.Errorf("bad job: %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.PublishJob(cancelled, newJob()); !errors.Is(err, context.Canceled) || errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
	bustest.Stop(t, e)
	await(t, "unavailable", func() bool { return errors.Is(b.PublishJob(testContext(t), newJob()), bus.ErrUnavailable) })
	await(t, "unhealthy", func() bool { ok, detail := b.Healthy(); return !ok && detail != "" })
	bustest.Resume(t, e)
	await(t, "published again", func() bool { return b.PublishJob(testContext(t), newJob()) == nil })
}

func TestConnectWhileDown(t *testing.T) {
	t.Parallel()
	e := bustest.StartTCP(t)
	url := e.URL()
	bustest.Stop(t, e)
	for name, opts := range map[string]bus.Options{"in process": {InProcess: e}, "tcp": {URL: url}} {
		opts.ReconnectWait = 5 * time.Millisecond
		b, err := bus.Connect(testContext(t), opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		if ok, detail := b.Healthy(); ok || detail == "" {
			t.Errorf("%s: healthy without a server (%q)", name, detail)
		}
		if err := b.PublishJob(testContext(t), newJob()); !errors.Is(err, bus.ErrUnavailable) {
			t.Errorf("%s: publish: %v", name, err)
		}
		got := make(chan bus.Job, 1)
		opts := bus.ConsumeOptions{Durable: "down-" + uuid.NewString()}
		if _, err := b.ConsumeJobs(context.Background(), opts, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
			got <- j
			return nil
		}); err != nil {
			t.Fatalf("%s: consume: %v", name, err)
		}
		bustest.Resume(t, e)
		bustest.AwaitHealthy(t, b)
		j := newJob()
		mustPublish(t, b, j)
		if r := receive(t, got, "job"); r != j {
			t.Errorf("%s: got %+v", name, r)
		}
		bustest.Stop(t, e)
		if err := e.Wipe(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseWhileDown(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	consume(t, b, bus.ConsumeOptions{}, func(context.Context, bus.Job, bus.Delivery) error { return nil })
	if _, err := b.Subscribe(testContext(t), bus.SubscribeOptions{}, func(bus.Notice) {}); err != nil {
		t.Fatal(err)
	}
	bustest.Stop(t, e)
	for range 2 {
		if err := b.Close(testContext(t)); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := b.ConsumeJobs(testContext(t), bus.ConsumeOptions{Durable: "x"}, func(context.Context, bus.Job, bus.Delivery) error { return nil }); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("consume after close: %v", err)
	}
}

func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	for name, opts := range map[string]bus.Options{
		"neither":       {},
		"both":          {URL: "nats://127.0.0.1:1", InProcess: e},
		"no creds file": {InProcess: e, CredsFile: "/nonexistent/creds"},
		"no ca file":    {InProcess: e, CAFile: "/nonexistent/ca"},
		"cert alone":    {InProcess: e, CertFile: "cert.pem"},
		"bad url":       {URL: "nats://%zz"},
	} {
		if b, err := bus.Connect(testContext(t), opts); err == nil {
			t.Errorf("%s: accepted", name)
			_ = b.Close(context.Background())
		}
	}
	b := bustest.Connect(t, e)
	h := func(context.Context, bus.Job, bus.Delivery) error { return nil }
	for i, opts := range []bus.ConsumeOptions{{}, {Durable: "x", MaxDeliver: 1}, {Durable: "x", Concurrency: -1}, {Durable: "x", AckWait: -1}} {
		if _, err := b.ConsumeJobs(testContext(t), opts, h); err == nil {
			t.Errorf("consume options %d accepted", i)
		}
	}
	for _, listen := range []string{"0.0.0.0:0", "nonsense", "example.com:4222", "127.0.0.1:x"} {
		if _, err := bus.StartEmbedded(testContext(t), bus.EmbeddedOptions{StoreDir: t.TempDir(), Listen: listen}); err == nil {
			t.Errorf("embedded listens on %s", listen)
		}
	}
	if _, err := bus.StartEmbedded(testContext(t), bus.EmbeddedOptions{}); err == nil {
		t.Error("embedded without a store")
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	var mu sync.Mutex
	got := map[string][]int64{}
	total := make(chan struct{}, 1000)
	if _, err := b.Subscribe(testContext(t), bus.SubscribeOptions{OnGap: func() { t.Error("gap") }}, func(n bus.Notice) {
		mu.Lock()
		defer mu.Unlock()
		got[n.SID] = append(got[n.SID], n.Seq)
		total <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	p, err := b.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int64{}
	for range 10 {
		sid := uuid.NewString()
		for seq := int64(1); seq <= 20; seq++ {
			if !p.Notice(bus.Notice{Type: bus.TurnCompleted, Tenant: "default", SID: sid, Seq: seq}) {
				t.Fatal("dropped")
			}
			want[sid] = append(want[sid], seq)
		}
	}
	if !p.Job(newJob()) {
		t.Error("job dropped")
	}
	for range 2 {
		if err := p.Stop(testContext(t)); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	for range 200 {
		receive(t, total, "notice")
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order within a session: %s", diff)
	}
	if s := b.Stats(); s.Published != 201 || s.Dropped != 0 {
		t.Errorf("stats %+v", s)
	}
	if p.Job(newJob()) {
		t.Error("taken after Stop")
	}
}

func TestPublisherDropsWhileAway(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	p, err := b.NewPublisher(bus.PublisherOptions{Queue: 1, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	bustest.Stop(t, e)
	await(t, "dropped at once", func() bool { return !p.Job(newJob()) })
	if b.Stats().Dropped == 0 {
		t.Error("drop not counted")
	}
	bustest.Resume(t, e)
	await(t, "taken and stored", func() bool { p.Job(newJob()); return b.Stats().Published > 0 })
}

func ExampleBus_ConsumeJobs() {
	ctx := context.Background()
	b, err := bus.Connect(ctx, bus.Options{URL: "nats://nats.example:4222", Replicas: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close(ctx)
	_, _ = b.ConsumeJobs(ctx, bus.ConsumeOptions{
		Durable: bus.CompactorDurable,
		OnDead: func(_ context.Context, j bus.Job, _ bus.Delivery, cause error) error {
			fmt.Println("given up:", j.SID, cause) // write it down in Postgres
			return nil
		},
	}, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
		fmt.Println("compact", j.SID, "in epoch", j.Epoch)
		return nil
	})
}
