package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// errStopped is the cause of a loop's cancelled context when it was stopped.
var errStopped = errors.New("worker: stopped")

// A loop calls a function over and over: at once while there is more to do,
// else after an interval, and later after an error.
type loop struct {
	name     string
	interval time.Duration
	log      *slog.Logger
	step     func(ctx context.Context) (more bool, err error)

	mu     sync.Mutex
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// maxPause bounds the pause after repeated errors.
const maxPause = 30 * time.Second

func (l *loop) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.done = make(chan struct{})
	go l.run(ctx, l.done)
}

func (l *loop) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	failures := 0
	for ctx.Err() == nil {
		more, err := l.step(ctx)
		pause := l.interval
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			pause = min(l.interval<<min(failures, 5), maxPause)
			l.log.Warn(l.name+" failed; it will be tried again", "error", err, "pause", pause)
		case err == nil:
			failures = 0
			if more {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// stop ends the loop and waits for the step in hand, or for ctx.
func (l *loop) stop(ctx context.Context) error {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel(errStopped)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
