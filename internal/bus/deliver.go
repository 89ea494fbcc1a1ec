package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// recordTimeout bounds OnDead, which must also work while the consumer stops.
const recordTimeout = 10 * time.Second

// deliver runs one message to its end and answers the server.
func (c *Consumer) deliver(msg jetstream.Msg, from incarnation) {
	n := &c.bus.count
	n.delivered.Add(1)
	meta, err := msg.Metadata()
	if err != nil {
		c.bus.log.Error("message without JetStream metadata", "subject", msg.Subject(), "error", err)
		return
	}
	if meta.NumDelivered > 1 {
		n.redelivered.Add(1)
	}
	d := Delivery{Count: int(meta.NumDelivered), Max: c.opts.MaxDeliver, PublishedAt: meta.Timestamp}
	job, err := decodeJob(msg.Data())
	if err != nil {
		c.refuse(msg, from, meta, d, err)
		return
	}

	quiet := c.beat(msg, from)
	err = ErrExhausted
	if d.Count < d.Max {
		err = c.run(job, d)
	}
	stopping := c.runCtx.Err() != nil
	dead := errors.Is(err, ErrPermanent) || (err != nil && !stopping && d.Count >= d.Max-1) || d.Count >= d.Max
	log := c.bus.log.With("tenant", job.Tenant, "sid", job.SID, "epoch", job.Epoch,
		"delivery", d.Count, "of", d.Max)
	if dead {
		if rec := c.bury(job, d, err); rec != nil {
			log.Error("dead job not recorded", "error", rec, "cause", err)
			dead = d.Count >= d.Max // the server will not bring it back
		}
	}
	quiet()

	switch {
	case err == nil:
		c.answer(from, msg.Ack, &n.acked)
	case dead:
		log.Error("job given up", "error", err)
		c.answer(from, func() error { return msg.TermWithReason("given up") }, &n.dead)
	case stopping:
		c.pulling.Lock() // waits for the pulls to end
		c.pulling.Unlock()
		c.answer(from, msg.Nak, &n.returned)
	default:
		delay := c.opts.Backoff.Delay(d.Count)
		log.Warn("job failed, will be tried again", "after", delay, "error", err)
		c.answer(from, func() error { return msg.NakWithDelay(delay) }, &n.retried)
	}
}

// refuse ends a message that is no job. One of a newer version waits for a
// worker that can read it, as there is during an upgrade.
func (c *Consumer) refuse(msg jetstream.Msg, from incarnation, meta *jetstream.MsgMetadata, d Delivery, err error) {
	n := &c.bus.count
	log := c.bus.log.With("subject", msg.Subject(), "stream_seq", meta.Sequence.Stream, "bytes", len(msg.Data()), "error", err)
	if errors.Is(err, ErrVersion) && d.Count < d.Max-1 {
		log.Warn("job of a newer version left to another worker")
		c.answer(from, func() error { return msg.NakWithDelay(c.opts.Backoff.Delay(d.Count)) }, &n.retried)
		return
	}
	log.Error("message is no job, thrown away")
	c.answer(from, func() error { return msg.TermWithReason("malformed") }, &n.malformed)
}

// run calls the handler; a panic is a failure like another.
func (c *Consumer) run(job Job, d Delivery) (err error) {
	if c.runCtx.Err() != nil {
		return context.Cause(c.runCtx)
	}
	ctx, cancel := context.WithTimeout(c.runCtx, c.opts.Timeout)
	defer cancel()
	defer c.recovered(&err)
	return c.handler(ctx, job, d)
}

// bury hands a dead job to OnDead.
func (c *Consumer) bury(job Job, d Delivery, cause error) (err error) {
	if c.opts.OnDead == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.runCtx), recordTimeout)
	defer cancel()
	defer c.recovered(&err)
	return c.opts.OnDead(ctx, job, d, cause)
}

func (c *Consumer) recovered(err *error) {
	if r := recover(); r != nil {
		c.bus.log.Error("job handler panicked", "panic", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("bus: handler panicked: %v", r)
	}
}

// beat tells the server every third of AckWait that the job lives, until the
// returned function is called or the job's time is over: a handler that does
// not end with its context loses the job to another worker.
func (c *Consumer) beat(msg jetstream.Msg, from incarnation) (quiet func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.runCtx), c.opts.Timeout+recordTimeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(c.opts.AckWait/3, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.answer(from, msg.InProgress, nil)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// answer sends what a delivery came to and counts it, unless the stream was
// made anew since: the server would take it for a word on another job. A lost
// answer brings the job again after AckWait.
func (c *Consumer) answer(from incarnation, send func() error, count interface{ Add(uint64) uint64 }) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.runCtx), topologyTimeout)
	defer cancel()
	now, err := c.bus.topo.current(ctx)
	if err == nil && !now.jobs.Equal(from.jobs) {
		c.bus.count.stale.Add(1)
		return
	}
	if err == nil {
		err = send()
	}
	switch {
	case err != nil:
		c.bus.log.Debug("answer not sent", "durable", c.opts.Durable, "error", err)
	case count != nil:
		count.Add(1)
	}
}
