package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
)

// errIdle is the cause of a stream that stood still.
var errIdle = errors.New("the answer stood still")

// errTimeout: the connection has a time limit of its own.
var errTimeout = errors.New("the connection timed out")

// errUnreadable stands for errors that may repeat what the provider said, which
// may be the conversation.
var errUnreadable = errors.New("the answer cannot be read")

// inOurWords names what happened to a connection. An error of HTTP itself may
// quote the bytes that it could not read.
func inOurWords(err error) error {
	for _, own := range []error{errTooLong, errRedirect} {
		if errors.Is(err, own) {
			return own
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if e, ok := errors.AsType[syscall.Errno](op); ok {
			return fmt.Errorf("%s: %w", op.Op, e)
		}
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the name %s is not found", e.Name)
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return e
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return errTimeout
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return errUnreadable
}

// Watch ends a stream that stands still. Its context is cancelled when Alive was
// not called for the idle time.
type Watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

// NewWatch starts watching; an idle time of 0 never ends anything.
func NewWatch(ctx context.Context, idle time.Duration) *Watch {
	w := &Watch{idle: idle}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if idle > 0 {
		w.timer = time.AfterFunc(idle, func() { w.cancel(errIdle) })
	}
	return w
}

// Context is what to run the stream under.
func (w *Watch) Context() context.Context { return w.ctx }

// Alive notes that something came.
func (w *Watch) Alive() {
	if w.timer != nil {
		w.timer.Reset(w.idle)
	}
}

// Stop ends the watch and gives the stream's resources back.
func (w *Watch) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(context.Canceled)
}

// Broken says in our words why a stream or a connection broke: it stood still,
// ran out of time, or was cut.
func (w *Watch) Broken(err error) error {
	fault := summarize.FaultDown
	err = inOurWords(err)
	if cause := context.Cause(w.ctx); cause != nil {
		err = cause
		if errors.Is(cause, errIdle) || errors.Is(cause, context.DeadlineExceeded) {
			fault = summarize.FaultSlow
		}
	}
	return &summarize.Failure{Fault: fault, Err: err}
}
