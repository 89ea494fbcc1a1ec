package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// PublishJob sends a job and waits until the server stored it. It returns
// within Options.PublishTimeout, at once when the connection is down, with an
// error that wraps [ErrUnavailable], or [ErrMalformed] for a job that is none.
func (b *Bus) PublishJob(ctx context.Context, j Job) error {
	data, err := encodeJob(j)
	if err != nil {
		return err
	}
	return b.publish(ctx, j.subject(), j.dedupID(), data)
}

// PublishNotice sends a notice as PublishJob sends a job.
func (b *Bus) PublishNotice(ctx context.Context, n Notice) error {
	data, err := encodeNotice(n)
	if err != nil {
		return err
	}
	return b.publish(ctx, n.subject(), n.dedupID(), data)
}

func (b *Bus) publish(ctx context.Context, subject, id string, data []byte) error {
	state, up := b.link.state()
	if !up {
		b.count.publishFailed.Add(1)
		return fmt.Errorf("%w: not connected", ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	timed, cancel := context.WithTimeout(ctx, b.opts.PublishTimeout)
	defer cancel()
	// A request whose connection broke would wait for its timeout.
	bound, unbind := bind(timed, state)
	defer unbind()

	seen := b.topo.last()
	ack, err := b.send(bound, subject, id, data)
	if gone(err) {
		if _, err2 := b.topo.recreate(bound, seen); err2 != nil {
			err = errors.Join(err, err2)
		} else {
			ack, err = b.send(bound, subject, id, data)
		}
	}
	switch {
	case err == nil:
		b.count.published.Add(1)
		if ack.Duplicate {
			b.count.duplicates.Add(1)
		}
		return nil
	case ctx.Err() != nil: // the caller's own end
		return fmt.Errorf("bus: publish: %w", context.Cause(ctx))
	}
	b.count.publishFailed.Add(1)
	if state.Err() != nil {
		// Not wrapped: it would read as the caller's own cancel.
		return fmt.Errorf("%w: connection changed while publishing", ErrUnavailable)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func (b *Bus) send(ctx context.Context, subject, id string, data []byte) (*jetstream.PubAck, error) {
	msg := &nats.Msg{Subject: subject, Data: data}
	// nats.go would wait for a leader; the caller's sweep does that better.
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if id != "" {
		opts = append(opts, jetstream.WithMsgID(id))
	}
	return b.js.PublishMsg(ctx, msg, opts...)
}

// gone reports whether err says that a stream or consumer does not exist, or
// that nobody answers for it.
func gone(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound) ||
		errors.Is(err, nats.ErrNoResponders)
}
