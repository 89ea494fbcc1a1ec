package bus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
)

// TestWipedMidLoad plays Postgres: jobs are owed until a worker did them, and a
// sweep publishes what is owed with the next attempt.
func TestWipedMidLoad(t *testing.T) {
	t.Parallel()
	for name, tcp := range map[string]bool{"in process": false, "tcp": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *bus.Embedded
			opts := bus.Options{ReconnectWait: 5 * time.Millisecond}
			if tcp {
				e = bustest.StartTCP(t)
				opts.URL = e.URL()
			} else {
				e = bustest.Start(t)
				opts.InProcess = e
			}
			connect := func() *bus.Bus {
				b, err := bus.Connect(testContext(t), opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := b.Close(context.Background()); err != nil {
						t.Errorf("close: %v", err)
					}
				})
				return b
			}
			node := connect()

			var mu sync.Mutex
			owed := map[string]bus.Job{}
			for range 300 {
				j := newJob()
				owed[j.SID] = j
			}
			started := make(chan struct{}, 100_000)
			for range 2 {
				consume(t, connect(), bus.ConsumeOptions{MaxDeliver: 50}, func(_ context.Context, j bus.Job, d bus.Delivery) error {
					started <- struct{}{}
					if d.Count == 1 && j.Attempt == 0 && j.SID[0] < '4' {
						return errHandler
					}
					mu.Lock()
					defer mu.Unlock()
					delete(owed, j.SID)
					return nil
				})
			}
			sweep := func() (left int) {
				mu.Lock()
				var due []bus.Job
				for sid, j := range owed {
					due = append(due, j)
					j.Attempt++
					owed[sid] = j
				}
				mu.Unlock()
				for _, j := range due {
					_ = node.PublishJob(t.Context(), j)
				}
				return len(due)
			}
			swept := make(chan struct{})
			go func() {
				defer close(swept)
				period := time.NewTicker(10 * time.Millisecond)
				defer period.Stop()
				for sweep() > 0 && t.Context().Err() == nil {
					<-period.C
				}
			}()
			for i := range 3 { // each while work is going on, if any is left
				select {
				case <-started:
				case <-swept:
				}
				if i == 0 {
					bustest.Stop(t, e)
					bustest.Resume(t, e)
				} else {
					bustest.Wipe(t, e)
				}
			}
			receive(t, swept, "end of debt")
			mu.Lock() // old attempts may still come
			defer mu.Unlock()
			if len(owed) != 0 {
				t.Errorf("%d jobs still owed", len(owed))
			}
			bustest.AwaitHealthy(t, node)
			if node.Stats().Connects < 2 {
				t.Errorf("the load never met a restart: %+v", node.Stats())
			}
		})
	}
}

// TestLateAckAfterWipe holds a job over a wipe. In the new stream its sequence
// is another job's, which a late ack would silently finish.
func TestLateAckAfterWipe(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	old, fresh := newJob(), newJob()
	mustPublish(t, b, old)
	started := make(chan bus.Delivery, 10)
	releaseOld, releaseFresh := make(chan struct{}), make(chan struct{})
	consume(t, b, bus.ConsumeOptions{Concurrency: 2}, func(_ context.Context, j bus.Job, d bus.Delivery) error {
		started <- d
		if j == old {
			<-releaseOld
			return nil
		}
		if d.Count == 1 {
			<-releaseFresh
			return errHandler
		}
		return nil
	})
	receive(t, started, "old job")
	bustest.Wipe(t, e)
	await(t, "publish", func() bool { return b.PublishJob(testContext(t), fresh) == nil })
	receive(t, started, "fresh job")
	close(releaseOld)
	await(t, "ack withheld", func() bool { return b.Stats().Stale == 1 })
	close(releaseFresh)
	if d := receive(t, started, "second delivery of the fresh job"); d.Count != 2 {
		t.Errorf("delivery %+v", d)
	}
}

// TestStreamDeleted takes the streams away under a connection that stays up.
func TestStreamDeleted(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	nc, err := nats.Connect("", nats.InProcessServer(e))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan bus.Job, 10)
	consume(t, b, bus.ConsumeOptions{}, func(_ context.Context, j bus.Job, _ bus.Delivery) error {
		got <- j
		return nil
	})
	gaps, notices := make(chan struct{}, 10), make(chan bus.Notice, 10)
	if _, err := b.Subscribe(testContext(t), bus.SubscribeOptions{OnGap: func() { gaps <- struct{}{} }}, func(n bus.Notice) { notices <- n }); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{bus.JobsStream, bus.EventsStream} {
		if err := js.DeleteStream(testContext(t), stream); err != nil {
			t.Fatal(err)
		}
	}
	j := newJob()
	n := bus.Notice{Type: bus.EpochRotated, Tenant: "default", SID: j.SID, Seq: 1, Epoch: 1}
	if err := b.PublishNotice(testContext(t), n); err != nil {
		t.Fatalf("publish onto a deleted stream: %v", err)
	}
	mustPublish(t, b, j)
	if r := receive(t, got, "job"); r != j {
		t.Errorf("got %+v", r)
	}
	receive(t, gaps, "gap")
	if r := receive(t, notices, "notice"); r != n {
		t.Errorf("got %+v", r)
	}
	// The consumer alone, too.
	if err := js.DeleteConsumer(testContext(t), bus.JobsStream, bus.CompactorDurable); err != nil {
		t.Fatal(err)
	}
	j.Attempt++
	mustPublish(t, b, j)
	await(t, "job after its consumer was deleted", func() bool { return receive(t, got, "job") == j })
}

func TestSubscriptionResumes(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	b := bustest.Connect(t, e)
	notice := func(seq int64) bus.Notice {
		return bus.Notice{Type: bus.TurnCompleted, Tenant: "default", SID: "01890a5d-ac96-774b-bcce-b302099a8057", Seq: seq}
	}
	publish := func(seq int64) {
		t.Helper()
		await(t, "publish", func() bool { return b.PublishNotice(testContext(t), notice(seq)) == nil })
	}
	publish(1) // before the subscription: not for it
	var mu sync.Mutex
	gaps := 0
	gapCount := func() int { mu.Lock(); defer mu.Unlock(); return gaps }
	got := make(chan bus.Notice, 10)
	s, err := b.Subscribe(testContext(t), bus.SubscribeOptions{OnGap: func() { mu.Lock(); defer mu.Unlock(); gaps++ }}, func(n bus.Notice) {
		got <- n
		panic("a subscriber's own fault")
	})
	if err != nil {
		t.Fatal(err)
	}
	publish(2)
	bustest.Stop(t, e)
	bustest.Resume(t, e)
	publish(3)
	for _, seq := range []int64{2, 3} {
		if n := receive(t, got, "notice"); n != notice(seq) {
			t.Errorf("got %+v, want seq %d", n, seq)
		}
	}
	if n := gapCount(); n != 0 {
		t.Errorf("%d gaps over a plain restart", n)
	}
	bustest.Wipe(t, e)
	publish(4)
	if n := receive(t, got, "notice"); n != notice(4) {
		t.Errorf("got %+v", n)
	}
	if gapCount() == 0 {
		t.Error("a wipe reported no gap")
	}
	for range 2 {
		if err := s.Stop(testContext(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestSubscribeWhileDown(t *testing.T) {
	t.Parallel()
	e := bustest.Start(t)
	bustest.Stop(t, e)
	b := bustest.Connect(t, e)
	gap := make(chan struct{}, 10)
	if _, err := b.Subscribe(testContext(t), bus.SubscribeOptions{OnGap: func() { gap <- struct{}{} }}, func(bus.Notice) {}); err != nil {
		t.Fatal(err)
	}
	bustest.Resume(t, e)
	receive(t, gap, "gap")
}
