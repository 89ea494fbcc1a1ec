package bus

import (
	"context"
	"sync"
)

// link is what is known of the connection without asking nats.go, whose state
// calls wait for a dial in progress. It is fed by the connection's callbacks.
type link struct {
	mu  sync.Mutex
	up  bool
	err error
	// ctx lasts until the next change; what must not outlive this state of
	// the connection derives from it.
	ctx    context.Context
	cancel context.CancelFunc
	rises  uint64
}

func newLink() *link {
	l := &link{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// set records a change. A reconnect seen without its disconnect is a change
// too.
func (l *link) set(up bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.err = up, err
	if up {
		l.rises++
	}
	l.cancel()
	l.ctx, l.cancel = context.WithCancel(context.Background())
}

// note records why the connection is still down.
func (l *link) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up {
		l.err = err
	}
}

// state returns whether the connection is up and a context that ends with
// that state.
func (l *link) state() (ctx context.Context, up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx, l.up
}

// reason returns the last error of a connection that is down.
func (l *link) reason() (up bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up, l.err
}

// ups counts the times the connection came up.
func (l *link) ups() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rises
}

// waitUp returns once the connection is up; an error is that ctx has ended,
// even when the connection is up.
func (l *link) waitUp(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		state, up := l.state()
		if up {
			return nil
		}
		select {
		case <-state.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// bind derives a context from ctx that also ends when state does.
func bind(ctx, state context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(state, cancel)
	return bound, func() {
		unhook()
		cancel()
	}
}
