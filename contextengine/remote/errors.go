package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ProtocolError says that an answer is not what the contract or HTTP allows:
// no JSON, another shape, cut off, too large.
type ProtocolError struct {
	// Op is the call, as its path names it.
	Op     string
	Reason string
	// Limit is the number of bytes or items that was passed, where one was.
	Limit int64
	Err   error
}

func (e *ProtocolError) Error() string {
	text := "remote engine: " + e.Op + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *ProtocolError) Unwrap() error { return e.Err }

// StatusError is an answer other than 2xx that is not one of the contract's own
// errors.
type StatusError struct {
	Op     string
	Status int
	// Slug is the end of the problem's type; "" where the body was no problem.
	Slug   string
	Detail string
	// RetryAfter is what the engine asks for; 0 when it does not ask.
	RetryAfter time.Duration
	// unsupported: the engine does not serve this call.
	unsupported bool
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("remote engine: %s: %d %s", e.Op, e.Status, http.StatusText(e.Status))
	if e.Slug != "" {
		text += " (" + e.Slug + ")"
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is makes an absent call match errors.ErrUnsupported.
func (e *StatusError) Is(target error) bool {
	return e.unsupported && target == errors.ErrUnsupported
}

// UnreachableError says that no answer came. Sent tells whether the engine may
// have seen the call.
type UnreachableError struct {
	Op   string
	Sent bool
	Err  error
}

func (e *UnreachableError) Error() string {
	return "remote engine: " + e.Op + ": no answer: " + e.Err.Error()
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// TimeoutError says that the client's own deadline for a call passed. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	Op    string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("remote engine: %s: no whole answer within %s", e.Op, e.After)
}

// Unwrap lets errors.Is find the deadline.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Timeout reports true, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// aborted is the error of a call whose caller has given up: the context's error
// and, where it says more, its cause.
func aborted(ctx context.Context, op string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return fmt.Errorf("remote engine: %s: %w", op, err)
	}
	return fmt.Errorf("remote engine: %s: %w: %w", op, err, cause)
}
