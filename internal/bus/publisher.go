package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// PublisherOptions configures NewPublisher.
type PublisherOptions struct {
	// Queue is how many messages may wait in each lane, default 1024.
	Queue int
	// Lanes is how many messages are on their way at once, default 8, at
	// most [Partitions].
	Lanes int
}

// Publisher sends without making its caller wait. What cannot be sent is
// dropped and counted: the sweep over Postgres publishes it again. Messages of
// one session go through one lane and keep their order.
type Publisher struct {
	bus   *Bus
	lanes []chan func(context.Context) error
	ctx   context.Context // ends what is on its way
	stop  context.CancelFunc
	done  chan struct{}

	mu     sync.RWMutex // write-held to close
	closed bool
}

// NewPublisher starts a publisher. Stop or [Bus.Close] ends it.
func (b *Bus) NewPublisher(opts PublisherOptions) (*Publisher, error) {
	n := min(cmp.Or(max(opts.Lanes, 0), 8), Partitions)
	p := &Publisher{bus: b, lanes: make([]chan func(context.Context) error, n), done: make(chan struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for i := range p.lanes {
		p.lanes[i] = make(chan func(context.Context) error, cmp.Or(max(opts.Queue, 0), 1024))
	}
	if err := b.join(p); err != nil {
		p.stop()
		return nil, err
	}
	var senders sync.WaitGroup
	for _, lane := range p.lanes {
		senders.Go(func() { p.run(lane) })
	}
	go func() {
		senders.Wait()
		b.leave(p)
		close(p.done)
	}()
	return p, nil
}

// Job queues a job and reports whether it was taken. It never blocks.
func (p *Publisher) Job(j Job) bool {
	return p.put(j.SID, func(ctx context.Context) error { return p.bus.PublishJob(ctx, j) })
}

// Notice queues a notice and reports whether it was taken. It never blocks.
func (p *Publisher) Notice(n Notice) bool {
	return p.put(n.SID, func(ctx context.Context) error { return p.bus.PublishNotice(ctx, n) })
}

func (p *Publisher) put(sid string, send func(context.Context) error) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, up := p.bus.link.state(); up && !p.closed {
		select {
		case p.lanes[Partition(sid)%len(p.lanes)] <- send:
			return true
		default:
		}
	}
	p.bus.count.dropped.Add(1)
	return false
}

func (p *Publisher) run(lane <-chan func(context.Context) error) {
	for send := range lane {
		err := send(p.ctx)
		switch {
		case err == nil:
		case errors.Is(err, ErrUnavailable), p.ctx.Err() != nil:
			p.bus.count.dropped.Add(1)
		default: // the caller's fault: say so
			p.bus.count.dropped.Add(1)
			p.bus.log.Error("message not published", "error", err)
		}
	}
}

// Stop takes no more, sends what is queued and returns; at ctx's end it drops
// the rest. Twice is safe.
func (p *Publisher) Stop(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		for _, lane := range p.lanes {
			close(lane)
		}
	}
	p.mu.Unlock()
	defer p.stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.stop()
		<-p.done
		return fmt.Errorf("bus: publisher cut off: %w", context.Cause(ctx))
	}
}
