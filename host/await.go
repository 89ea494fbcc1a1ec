package host

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// await makes a call that cannot hold the caller: it returns when the call does,
// when the limit passes (0 is none) or when the context ends. A call that does not listen
// is left to itself and its answer is dropped.
func await[R any](ctx context.Context, step string, limit time.Duration, do func(context.Context) (R, error)) (R, error) {
	type answer struct {
		res R
		err error
	}
	var none R
	if ctx.Err() != nil {
		return none, aborted(ctx, step)
	}
	inner, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		inner, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &PanicError{Step: step, Value: v, Stack: debug.Stack()}}
			}
			answers <- a
		}()
		a.res, a.err = do(inner)
	}()
	var a answer
	select {
	case a = <-answers:
	case <-inner.Done():
		a.err = inner.Err()
	}
	switch {
	case ctx.Err() != nil:
		return none, aborted(ctx, step)
	case a.err != nil && inner.Err() != nil && errors.Is(a.err, context.DeadlineExceeded):
		return none, &TimeoutError{Step: step, After: limit}
	}
	return a.res, a.err
}

func aborted(ctx context.Context, step string) error {
	return &AbortError{Step: step, Err: ctx.Err(), Cause: context.Cause(ctx)}
}

// isAbort tells a turn that was given up from one that failed.
func isAbort(err error) bool {
	var abort *AbortError
	return errors.As(err, &abort)
}
