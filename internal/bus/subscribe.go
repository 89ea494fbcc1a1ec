package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// SubscribeOptions configures Subscribe.
type SubscribeOptions struct {
	// OnGap is called before the next notice when some may have been missed.
	OnGap func()
}

// Subscription hands notices to one function until it is stopped.
type Subscription struct {
	bus    *Bus
	opts   SubscribeOptions
	handle func(Notice)
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	// Where the subscription stands: the next stream sequence, and of which
	// stream. next 0: nowhere yet.
	next   uint64
	events time.Time
}

// Subscribe hands every notice published from now on to handle, one at a time.
// It needs no acknowledgement and leaves nothing behind on the server. With
// NATS away it returns too, and begins, with OnGap, when NATS is there. The end
// of ctx, [Subscription.Stop] and [Bus.Close] end it.
func (b *Bus) Subscribe(ctx context.Context, opts SubscribeOptions, handle func(Notice)) (*Subscription, error) {
	if handle == nil {
		return nil, errors.New("bus: a subscription needs a function")
	}
	if opts.OnGap == nil {
		opts.OnGap = func() {}
	}
	s := &Subscription{bus: b, opts: opts, handle: handle, done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if err := b.join(s); err != nil {
		s.cancel()
		return nil, err
	}
	if _, up := b.link.state(); up {
		look, cancel := context.WithTimeout(s.ctx, firstLook)
		if _, err := s.place(look); err != nil {
			b.log.Warn("subscription not ready, trying on", "error", err)
		}
		cancel()
	}
	late := s.next == 0
	go func() {
		if late {
			s.call(s.opts.OnGap)
		}
		s.run()
		s.cancel()
		b.leave(s)
		close(s.done)
	}()
	return s, nil
}

// Stop ends the subscription after the notice in hand, if any, is handled or
// ctx ends. Twice is safe.
func (s *Subscription) Stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("bus: subscriber still busy: %w", context.Cause(ctx))
	}
}

func (s *Subscription) run() {
	retry := newBackoff(50*time.Millisecond, 5*time.Second)
	for failures := 0; s.bus.link.waitUp(s.ctx) == nil; {
		state, _ := s.bus.link.state()
		ctx, cancel := bind(s.ctx, state)
		before := s.next
		err := s.follow(ctx)
		if s.next != before {
			failures = 0
		}
		if ctx.Err() == nil {
			failures++
			s.bus.log.Warn("subscription interrupted", "failures", failures, "error", err)
			retry.sleep(ctx, failures)
		}
		cancel()
	}
}

// follow reads from where the subscription stands until something breaks.
func (s *Subscription) follow(ctx context.Context) error {
	gap, err := s.place(ctx)
	if err != nil {
		return err
	}
	if gap {
		s.call(s.opts.OnGap)
	}
	// Not the client's ordered consumer: it would go on by number in a stream
	// that was made anew.
	cons, err := s.bus.js.CreateConsumer(ctx, EventsStream, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       s.next,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: time.Minute,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return fmt.Errorf("bus: subscribe: %w", err)
	}
	it, err := cons.Messages(
		jetstream.PullMaxMessages(256),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return fmt.Errorf("bus: subscribe: %w", err)
	}
	defer it.Stop()
	for first := true; ; first = false {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("bus: next notice: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("bus: notice: %w", err)
		}
		switch seq := meta.Sequence.Stream; {
		case seq < s.next:
			continue
		case seq > s.next && !first:
			return errors.New("bus: notices lost on the way") // read again
		case seq > s.next: // not in the stream any more
			s.call(s.opts.OnGap)
		}
		s.next = meta.Sequence.Stream + 1
		n, err := decodeNotice(msg.Data())
		if err != nil {
			s.bus.count.malformed.Add(1)
			s.bus.log.Error("message is no notice, skipped", "subject", msg.Subject(), "bytes", len(msg.Data()), "error", err)
			continue
		}
		s.call(func() { s.handle(n) })
	}
}

// place finds the sequence to go on with and reports whether notices between
// the last one and that are gone.
func (s *Subscription) place(ctx context.Context) (gap bool, err error) {
	inc, err := s.bus.topo.current(ctx)
	if err != nil {
		return false, err
	}
	stream, err := s.bus.js.Stream(ctx, EventsStream)
	if gone(err) {
		if _, err = s.bus.topo.recreate(ctx, inc); err == nil {
			stream, err = s.bus.js.Stream(ctx, EventsStream)
		}
	}
	if err != nil {
		return false, fmt.Errorf("bus: place of subscription: %w", err)
	}
	info := stream.CachedInfo()
	first, end := max(info.State.FirstSeq, 1), info.State.LastSeq+1
	switch {
	case s.next == 0: // the beginning: what comes from now on
		s.next = end
	case !info.Created.Equal(s.events): // made anew: all of it is new
		s.next, gap = first, true
	case s.next < first: // aged out
		s.next, gap = first, true
	case s.next > end: // a crash took the end of the stream
		s.next, gap = end, true
	}
	s.events = info.Created
	return gap, nil
}

// call runs the subscriber's code; its panic is its own.
func (s *Subscription) call(f func()) {
	defer func() {
		if r := recover(); r != nil {
			s.bus.log.Error("subscriber panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}
