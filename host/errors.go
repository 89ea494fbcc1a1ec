package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/engined/engined/contextengine"
)

// AbortError says that the caller gave the turn up. It matches the context's
// error and its cause.
type AbortError struct {
	// Step is what was going on.
	Step  string
	Err   error
	Cause error
}

func (e *AbortError) Error() string { return "turn aborted during " + e.Step + ": " + e.Cause.Error() }

// Unwrap lets errors.Is find both.
func (e *AbortError) Unwrap() []error { return []error{e.Err, e.Cause} }

// ModelError says that the model failed for another reason than the prompt's
// size.
type ModelError struct{ Err error }

func (e *ModelError) Error() string { return "model: " + e.Err.Error() }

func (e *ModelError) Unwrap() error { return e.Err }

// ContextOverflowError says that the prompt is too large for the model and could
// not be made to fit.
type ContextOverflowError struct {
	// Compactions is how many were tried.
	Compactions int
	// Reason is why there is not another.
	Reason string
	Err    error
}

func (e *ContextOverflowError) Error() string {
	text := fmt.Sprintf("the prompt is too large for the model and %s (compactions tried: %d)", e.Reason, e.Compactions)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *ContextOverflowError) Unwrap() error { return e.Err }

// ErrIdenticalPayload is why a prompt was not sent: the model has refused the
// same bytes before.
var ErrIdenticalPayload = errors.New("refusing to resend the byte-identical payload after a context rejection")

// ToolError says that a tool could not be run.
type ToolError struct {
	Call ToolCall
	Err  error
}

func (e *ToolError) Error() string { return "tool " + e.Call.Name + ": " + e.Err.Error() }

func (e *ToolError) Unwrap() error { return e.Err }

// TimeoutError says that a call had no answer in time. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	Step  string
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("%s: no answer within %s", e.Step, e.After) }

// Unwrap makes it a deadline's.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Timeout reports true, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// PanicError is a panic of an engine, a model or a tool.
type PanicError struct {
	Step  string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s: panic: %v", e.Step, e.Value) }

// RequirementError says that the engine needs a host that can do more.
type RequirementError struct {
	EngineID string
	Missing  []contextengine.Capability
	Message  string
}

func (e *RequirementError) Error() string {
	names := make([]string, len(e.Missing))
	for i, c := range e.Missing {
		names[i] = string(c)
	}
	return strings.TrimSpace(fmt.Sprintf("context engine %q cannot run here; the host lacks %s. %s", e.EngineID, strings.Join(names, ", "), e.Message))
}
