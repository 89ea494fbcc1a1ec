package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// topologyTimeout bounds one try to create the streams.
const topologyTimeout = 5 * time.Second

// incarnation identifies the streams as they were last seen. A stream that was
// deleted and made anew has the same name and counts from 1 again; only its
// time of creation tells.
type incarnation struct {
	jobs, events time.Time
	// link is the connection it was seen on, seen numbers the look.
	link, seen uint64
}

// topology keeps the streams in existence.
type topology struct {
	js       jetstream.JetStream
	replicas int
	observe  bool // look, and write nothing
	// reconnects numbers the connections, ahead of any callback.
	reconnects func() uint64
	making     chan struct{} // held by the one who creates

	mu  sync.Mutex
	inc incarnation
	err error // of the last look
}

func newTopology(js jetstream.JetStream, replicas int, reconnects func() uint64) *topology {
	return &topology{js: js, replicas: replicas, reconnects: reconnects, making: make(chan struct{}, 1)}
}

// current returns the streams as seen on the present connection, and creates
// what is missing on the first call after a reconnect.
func (t *topology) current(ctx context.Context) (incarnation, error) {
	if inc := t.last(); t.fresh(inc) {
		return inc, nil
	}
	return t.create(ctx, t.fresh)
}

// recreate looks again although old was believed, and creates what is missing.
// Of several callers with the same old, one does the work.
func (t *topology) recreate(ctx context.Context, old incarnation) (incarnation, error) {
	return t.create(ctx, func(inc incarnation) bool { return inc.seen != old.seen && t.fresh(inc) })
}

func (t *topology) fresh(inc incarnation) bool { return inc.seen > 0 && inc.link == t.reconnects() }

func (t *topology) last() incarnation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inc
}

// problem returns why the last look failed, nil when it did not.
func (t *topology) problem() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// create makes the streams unless enough says that another call just did.
func (t *topology) create(ctx context.Context, enough func(incarnation) bool) (incarnation, error) {
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	select {
	case t.making <- struct{}{}:
		defer func() { <-t.making }()
	case <-ctx.Done():
		return incarnation{}, context.Cause(ctx)
	}
	inc := t.last()
	if enough(inc) {
		return inc, nil
	}
	next := incarnation{link: t.reconnects(), seen: inc.seen + 1}
	err := t.apply(ctx, &next)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	if err != nil {
		return incarnation{}, err
	}
	t.inc = next
	return next, nil
}

func (t *topology) apply(ctx context.Context, next *incarnation) error {
	created := [2]*time.Time{&next.jobs, &next.events}
	for i, cfg := range streamConfigs(t.replicas) {
		s, err := t.stream(ctx, cfg)
		if err != nil {
			return fmt.Errorf("bus: stream %s: %w", cfg.Name, err)
		}
		*created[i] = s.CachedInfo().Created
	}
	return nil
}

// stream writes only what is not as wanted. An update is a consensus round in a
// cluster, every node looks after every reconnect, and the server (2.15.3) has a
// data race between a stream's update and the creation of its consumers.
func (t *topology) stream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := t.js.Stream(ctx, cfg.Name)
	switch {
	case t.observe:
		return s, err
	case errors.Is(err, jetstream.ErrStreamNotFound):
		// Equal configurations created at once by several nodes are one stream.
		return t.js.CreateStream(ctx, cfg)
	case err != nil:
		return nil, err
	case sameStream(s.CachedInfo().Config, cfg):
		return s, nil
	}
	return t.js.UpdateStream(ctx, cfg)
}

// sameStream compares what this package sets; the server adds defaults.
func sameStream(have, want jetstream.StreamConfig) bool {
	return slices.Equal(have.Subjects, want.Subjects) &&
		have.Description == want.Description &&
		have.Retention == want.Retention &&
		have.Discard == want.Discard &&
		have.Storage == want.Storage &&
		have.MaxAge == want.MaxAge &&
		have.MaxMsgs == want.MaxMsgs &&
		have.MaxMsgSize == want.MaxMsgSize &&
		have.Duplicates == want.Duplicates &&
		have.Replicas == want.Replicas
}
