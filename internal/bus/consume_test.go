package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
)

var errHandler = errors.New("summarizer is down")

func TestWorkerCrashRedeliversToAnother(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	one, two := bustest.Connect(t, e), bustest.Connect(t, e)
	j := newJob()
	mustPublish(t, one, j)

	crash, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	cause := make(chan error, 1)
	if _, err := one.ConsumeJobs(crash, bus.ConsumeOptions{Durable: bus.CompactorDurable}, func(ctx context.Context, _ bus.Job, _ bus.Delivery) error {
		close(started)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	receive(t, started, "first delivery")
	got := make(chan bus.Delivery, 1)
	consume(t, two, bus.ConsumeOptions{}, func(_ context.Context, again bus.Job, d bus.Delivery) error {
		if again != j {
			t.Errorf("got %+v", again)
		}
		got <- d
		return nil
	})
	cancel()
	// AckWait is 30 s: only the hand-back explains an earlier delivery.
	if d := receive(t, got, "second delivery"); d.Count != 2 {
		t.Errorf("delivery %+v", d)
	}
	if err := receive(t, cause, "cause"); !errors.Is(err, context.Canceled) {
		t.Errorf("cause %v", err)
	}
}

func TestSilentWorkerLosesItsJob(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	const ackWait = 100 * time.Millisecond

	// A worker that vanishes with its connection says nothing at all.
	gone, err := bus.Connect(testContext(t), bus.Options{InProcess: e})
	if err != nil {
		t.Fatal(err)
	}
	mustPublish(t, b, newJob())
	started, release := make(chan struct{}, 10), make(chan struct{})
	opts := bus.ConsumeOptions{Durable: bus.CompactorDurable, AckWait: ackWait, Concurrency: 1}
	vanished, err := gone.ConsumeJobs(context.Background(), opts, func(context.Context, bus.Job, bus.Delivery) error {
		started <- struct{}{}
		<-release
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, started, "first delivery")
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	if err := gone.Close(expired); err == nil {
		t.Error("close reported nothing though a handler ignored its context")
	}
	got := make(chan bus.Delivery, 10)
	consume(t, b, bus.ConsumeOptions{AckWait: ackWait}, func(_ context.Context, _ bus.Job, d bus.Delivery) error {
		got <- d
		return nil
	})
	if d := receive(t, got, "next delivery"); d.Count < 2 {
		t.Errorf("delivery %+v", d)
	}
	close(release)
	if err := vanished.Stop(testContext(t)); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestRunningJobSaysThatItLives(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	nc, err := nats.Connect("", nats.InProcessServer(e))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answers := make(chan string, 1000)
	if _, err := nc.Subscribe("$JS.ACK.>", func(m *nats.Msg) { answers <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	consume(t, b, bus.ConsumeOptions{AckWait: time.Second}, func(ctx context.Context, _ bus.Job, _ bus.Delivery) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})
	mustPublish(t, b, newJob())
	for range 3 {
		if a := receive(t, answers, "sign of life"); a != "+WPI" {
			t.Errorf("answer %q", a)
		}
	}
	close(release)
	for a := "+WPI"; a != "+ACK"; {
		if a = receive(t, answers, "ack"); a != "+WPI" && a != "+ACK" {
			t.Fatalf("answer %q", a)
		}
	}
	// Nothing after the ack: the beat ended before it.
	last := newJob()
	mustPublish(t, b, last)
	if a := receive(t, answers, "ack of another job"); a != "+ACK" {
		t.Errorf("answer %q after the ack", a)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t, bustest.Start(t))
	failing, hopeless, panics := newJob(), newJob(), newJob()
	type death struct {
		job   bus.Job
		d     bus.Delivery
		cause error
	}
	dead := make(chan death, 10)
	var mu sync.Mutex
	runs := map[bus.Job]int{}
	recordFails := true
	consume(t, b, bus.ConsumeOptions{
		MaxDeliver: 4,
		OnDead: func(_ context.Context, j bus.Job, d bus.Delivery, cause error) error {
			mu.Lock()
			defer mu.Unlock()
			if j == panics && recordFails {
				recordFails = false
				return errors.New("Postgres is away")
			}
			dead <- death{j, d, cause}
			return nil
		},
	}, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
		mu.Lock()
		runs[j]++
		mu.Unlock()
		switch j {
		case hopeless:
			return errors.Join(errHandler, bus.ErrPermanent)
		case panics:
			panic("bad plan")
		}
		return errHandler
	})
	mustPublish(t, b, failing, hopeless, panics)
	got := map[bus.Job]death{}
	for range 3 {
		d := receive(t, dead, "dead job")
		got[d.job] = d
	}
	await(t, "three terminated", func() bool { return b.Stats().Dead == 3 })
	mu.Lock()
	defer mu.Unlock()
	for j, want := range map[bus.Job]struct {
		runs, count int
		cause       error
	}{
		failing:  {3, 3, errHandler},
		hopeless: {1, 1, bus.ErrPermanent},
		// Not recorded at delivery 3, so it comes once more, unrun.
		panics: {3, 4, bus.ErrExhausted},
	} {
		d := got[j]
		if runs[j] != want.runs || d.d.Count != want.count || !errors.Is(d.cause, want.cause) {
			t.Errorf("%d runs, dead at %d of %v; want %+v", runs[j], d.d.Count, d.cause, want)
		}
	}
}

func TestStopDrains(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t, bustest.Start(t))
	mustPublish(t, b, newJob())
	started, release := make(chan struct{}), make(chan struct{})
	c := consume(t, b, bus.ConsumeOptions{Concurrency: 2}, func(ctx context.Context, _ bus.Job, _ bus.Delivery) error {
		close(started)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	receive(t, started, "job")
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(context.Background()) }()
	close(release)
	if err := receive(t, stopped, "stop"); err != nil {
		t.Errorf("stop: %v", err)
	}
	if s := b.Stats(); s.Acked != 1 || s.Returned != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestStopCutsOffAtDeadline(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t, bustest.Start(t))
	mustPublish(t, b, newJob())
	started := make(chan struct{})
	cause := make(chan error, 1)
	c := consume(t, b, bus.ConsumeOptions{OnDead: func(context.Context, bus.Job, bus.Delivery, error) error {
		t.Error("a stopped job is not dead")
		return nil
	}}, func(ctx context.Context, _ bus.Job, _ bus.Delivery) error {
		close(started)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return errHandler // whatever it says, it was the stop
	})
	receive(t, started, "job")
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Stop(expired); err == nil {
		t.Error("cutting off reported nothing")
	}
	if err := receive(t, cause, "cause"); !errors.Is(err, bus.ErrStopped) {
		t.Errorf("cause %v", err)
	}
	if s := b.Stats(); s.Returned != 1 || s.Retried != 0 {
		t.Errorf("stats %+v", s)
	}
}
