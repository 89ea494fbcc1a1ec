package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// CompactorDurable is the durable consumer of the compaction workers. Change
// the number with the meaning of a delivery; nodes of both versions may then
// run side by side, and the new one sees the jobs of the last hour again.
const CompactorDurable = "compactor-v1"

const (
	// A long pull costs nothing; a broken one is noticed when two heartbeats
	// are missing.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 2 * time.Second
	// drainTimeout bounds the end of a pull, one round trip.
	drainTimeout = 2 * time.Second
	// Failed jobs that wait for their turn count as unacknowledged; a
	// thousand of one tenant must not hold up the others.
	maxAckPending = 20_000
	// stopGrace is how long a cut-off handler may take to return.
	stopGrace = 3 * time.Second
)

// ConsumeOptions configures ConsumeJobs. All workers of one durable use equal
// values, or they overwrite each other's.
type ConsumeOptions struct {
	// Durable names the consumer the workers share.
	Durable string
	// Concurrency is how many jobs run at once, default 4. A job is fetched
	// only when it can run at once.
	Concurrency int
	// AckWait is how long a worker may be silent before its job goes to
	// another, default 30 s. A running job says that it lives every third.
	AckWait time.Duration
	// MaxDeliver is the most deliveries of one job, default 6, at least 2. The
	// handler gets all but the last.
	MaxDeliver int
	// Backoff between failures, default 1 s to 1 min.
	Backoff Backoff
	// Timeout ends a job's context, default 10 min.
	Timeout time.Duration
	// OnDead records a job that will not be delivered again and why. An error
	// brings the job back while deliveries are left.
	OnDead func(ctx context.Context, j Job, d Delivery, cause error) error
}

// Delivery is one hand-over of a job.
type Delivery struct {
	// Count is 1 at the first delivery, at most Max.
	Count, Max int
	// PublishedAt is when the server took the job, by its clock.
	PublishedAt time.Time
}

// Handler does a job. Nil means done; [ErrPermanent] hopeless; any other error
// that it is to be tried again. ctx ends with the timeout of the job or with
// the consumer; its cause is then [ErrStopped].
type Handler func(ctx context.Context, j Job, d Delivery) error

// Consumer runs jobs until it is stopped.
type Consumer struct {
	bus     *Bus
	opts    ConsumeOptions
	handler Handler

	pull     context.Context // ends the fetching
	stopPull context.CancelFunc
	runCtx   context.Context // ends the handlers
	stopRun  context.CancelCauseFunc
	done     chan struct{} // closed when every slot has ended

	// pulling is read-held by every slot that waits for a job. A stop that gives
	// jobs back takes it first: no slot of this consumer may get them again.
	pulling sync.RWMutex

	mu   sync.Mutex // held over the creation of the server's consumer
	cons jetstream.Consumer
	inc  incarnation
}

// ConsumeJobs starts a consumer and returns when it is consuming; with NATS
// away it returns too, and begins when NATS is there. It outlives restarts and
// wipes of the server. The end of ctx stops it without waiting for its jobs;
// [Consumer.Stop] and [Bus.Close] let them finish.
func (b *Bus) ConsumeJobs(ctx context.Context, opts ConsumeOptions, h Handler) (*Consumer, error) {
	opts.Concurrency = cmp.Or(opts.Concurrency, 4)
	opts.AckWait = cmp.Or(opts.AckWait, 30*time.Second)
	opts.MaxDeliver = cmp.Or(opts.MaxDeliver, 6)
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Minute)
	opts.Backoff.Min = cmp.Or(opts.Backoff.Min, time.Second)
	opts.Backoff.Max = max(cmp.Or(opts.Backoff.Max, time.Minute), opts.Backoff.Min)
	switch {
	case opts.Durable == "" || h == nil:
		return nil, errors.New("bus: a consumer needs a durable name and a handler")
	case opts.Concurrency < 1 || opts.AckWait <= 0 || opts.MaxDeliver < 2 || opts.Timeout <= 0 || opts.Backoff.Min < 0:
		return nil, errors.New("bus: consumer options out of range")
	}
	c := &Consumer{bus: b, opts: opts, handler: h, done: make(chan struct{})}
	c.runCtx, c.stopRun = context.WithCancelCause(ctx)
	c.pull, c.stopPull = context.WithCancel(c.runCtx)
	if err := b.join(c); err != nil {
		c.stopRun(ErrClosed)
		return nil, err
	}
	if _, up := b.link.state(); up {
		look, cancel := context.WithTimeout(c.pull, firstLook)
		if _, _, err := c.open(look); err != nil {
			b.log.Warn("consumer not ready, trying on", "durable", opts.Durable, "error", err)
		}
		cancel()
	}
	var slots sync.WaitGroup
	for range opts.Concurrency {
		slots.Go(c.slot)
	}
	go func() {
		slots.Wait()
		c.stopRun(ErrStopped)
		b.leave(c)
		close(c.done)
	}()
	return c, nil
}

// Stop fetches no more, waits for running jobs and returns. At ctx's end it
// cancels them with [ErrStopped] and gives their jobs back at once. An error
// says that jobs were cut off or, after a short grace, still run. Twice is safe.
func (c *Consumer) Stop(ctx context.Context) error {
	c.stopPull()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	c.stopRun(ErrStopped)
	t := time.NewTimer(stopGrace)
	defer t.Stop()
	select {
	case <-c.done:
		return fmt.Errorf("bus: jobs cut off: %w", context.Cause(ctx))
	case <-t.C:
		return errors.New("bus: handlers ignore their context and still run")
	}
}

// slot runs one job after the other.
func (c *Consumer) slot() {
	retry := newBackoff(50*time.Millisecond, 5*time.Second)
	for failures := 0; c.bus.link.waitUp(c.pull) == nil; {
		// A pull does not survive its connection, and nothing would say so.
		state, _ := c.bus.link.state()
		ctx, cancel := bind(c.pull, state)
		jobs, err := c.work(ctx)
		if jobs > 0 || errors.Is(err, jetstream.ErrNoHeartbeat) {
			failures = 0 // that pull was lost, not the consumer
		}
		if ctx.Err() == nil {
			failures++
			c.bus.log.Warn("fetching of jobs interrupted", "durable", c.opts.Durable, "failures", failures, "error", err)
			retry.sleep(ctx, failures)
		}
		cancel()
	}
}

// work pulls job after job until ctx ends or something breaks, and tells how
// many it ran.
func (c *Consumer) work(ctx context.Context) (jobs int, err error) {
	cons, from, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	it, err := cons.Messages(
		jetstream.PullMaxMessages(1), // a job fetched ahead would burn its AckWait here
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return 0, fmt.Errorf("bus: pull: %w", err)
	}
	defer it.Stop()
	for {
		c.pulling.RLock()
		if ctx.Err() != nil { // Next would send a pull all the same
			c.pulling.RUnlock()
			return jobs, context.Cause(ctx)
		}
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil && c.pull.Err() != nil {
			c.handBack(it, from)
		}
		c.pulling.RUnlock()
		if err != nil {
			c.forget(cons)
			return jobs, fmt.Errorf("bus: pull: %w", err)
		}
		c.deliver(msg, from)
		jobs++
	}
}

// handBack ends a pull and returns the message that crossed its end, which
// would otherwise lie until AckWait.
func (c *Consumer) handBack(it jetstream.MessagesContext, from incarnation) {
	if _, up := c.bus.link.state(); !up {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.pull), drainTimeout)
	defer cancel()
	it.Drain()
	for {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return
		}
		c.answer(from, msg.Nak, &c.bus.count.returned)
	}
}

// open returns the server's consumer, created when it may be missing.
func (c *Consumer) open(ctx context.Context) (jetstream.Consumer, incarnation, error) {
	inc, err := c.bus.topo.current(ctx)
	if err != nil {
		return nil, inc, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cons != nil && c.inc == inc {
		return c.cons, inc, nil
	}
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Durable:       c.opts.Durable,
		FilterSubject: jobSubjects,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.opts.AckWait,
		MaxDeliver:    c.opts.MaxDeliver,
		MaxAckPending: maxAckPending,
	}
	cons, err := c.bus.js.CreateOrUpdateConsumer(ctx, JobsStream, cfg)
	if gone(err) {
		if inc, err = c.bus.topo.recreate(ctx, inc); err == nil {
			cons, err = c.bus.js.CreateOrUpdateConsumer(ctx, JobsStream, cfg)
		}
	}
	if err != nil {
		return nil, inc, fmt.Errorf("bus: consumer %s: %w", c.opts.Durable, err)
	}
	c.cons, c.inc = cons, inc
	return cons, inc, nil
}

// forget makes the next open create the consumer that old is a handle of.
func (c *Consumer) forget(old jetstream.Consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cons == old {
		c.cons = nil
	}
}
