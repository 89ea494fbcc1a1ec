package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A panicError is a panic that was caught.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// An overdueError says that no answer came in time.
type overdueError struct{ limit time.Duration }

func (e *overdueError) Error() string { return fmt.Sprintf("no answer within %s", e.limit) }

// Unwrap makes the error a deadline's to whoever asks.
func (e *overdueError) Unwrap() error { return context.DeadlineExceeded }

// An abortError says that the caller gave up. It says nothing of the engine.
type abortError struct{ err, cause error }

func (e *abortError) Error() string {
	if errors.Is(e.cause, e.err) {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.cause.Error()
}

func (e *abortError) Unwrap() []error { return []error{e.err, e.cause} }

// aborted is an *abortError once the caller has given up, else nil.
func aborted(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &abortError{err, context.Cause(ctx)}
	}
	return nil
}

// safeIs is errors.Is for errors that a broken engine made: asking them may
// panic.
func safeIs(err, target error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return errors.Is(err, target)
}

// caught calls do and turns a panic into an error.
func caught[R any](ctx context.Context, do func(context.Context) (R, error)) (res R, err error) {
	defer func() {
		if v := recover(); v != nil {
			var none R
			res, err = none, &panicError{v, debug.Stack()}
		}
	}()
	return do(ctx)
}

// hooks follow a call that runs apart. Each may be nil.
type hooks[R any] struct {
	// gaveUp is called when the caller waits no longer, late with an answer
	// that comes after that, ended when the call has really returned.
	gaveUp func()
	late   func(R)
	ended  func(abandoned bool)
}

// apart calls do in a goroutine of its own and leaves it there when the
// deadline passes or the caller gives up: nothing that do ignores can hold the
// caller. The goroutine lives until do returns.
func apart[R any](ctx context.Context, limit time.Duration, do func(context.Context) (R, error), h hooks[R]) (R, error) {
	type answer struct {
		res R
		err error
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers := make(chan answer, 1)
	var settled atomic.Bool // by the answer or by giving up, whichever is first
	go func() {
		res, err := caught(inner, do)
		first := settled.CompareAndSwap(false, true)
		if first {
			answers <- answer{res, err}
		} else if h.late != nil && err == nil {
			h.late(res)
		}
		if h.ended != nil {
			h.ended(!first)
		}
	}()
	select {
	case a := <-answers:
		return a.res, overdue(inner, ctx, limit, a.err)
	case <-inner.Done():
	}
	if !settled.CompareAndSwap(false, true) {
		a := <-answers // it came at the same moment
		return a.res, overdue(inner, ctx, limit, a.err)
	}
	if h.gaveUp != nil {
		h.gaveUp()
	}
	var none R
	if err := aborted(ctx); err != nil {
		return none, err
	}
	return none, &overdueError{limit}
}

// within calls do in the caller's goroutine, for code that heeds its context.
func within[R any](ctx context.Context, limit time.Duration, do func(context.Context) (R, error)) (R, error) {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := caught(inner, do)
	return res, overdue(inner, ctx, limit, err)
}

// overdue names an error for what it comes from: the caller, who gave up, or
// the deadline.
func overdue(inner, ctx context.Context, limit time.Duration, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return aborted(ctx)
	case inner.Err() != nil && safeIs(err, context.DeadlineExceeded):
		return &overdueError{limit}
	}
	return err
}
