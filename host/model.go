package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/engined/engined/contextengine"
)

// Model answers a prompt.
type Model interface {
	// Complete makes one call. A prompt that is too large is an *OverflowError;
	// transient failures are the model's own to retry.
	Complete(ctx context.Context, r Request) (Response, error)
}

// Request is one model call.
type Request struct {
	Model string
	// System is the gateway's prompt, which does not change within a session.
	System string
	// SystemAddition is the engine's. It belongs behind System, so that the
	// provider's cache of System stays good.
	SystemAddition string
	// Messages are the window and then the turn's own messages.
	Messages []json.RawMessage
	// Tools are the names of what the model may call.
	Tools []string
}

// Response is the model's answer.
type Response struct {
	// Message is the assistant message, in the dialect of the session.
	Message json.RawMessage
	// ToolCalls are the calls in Message. Without any the turn is over.
	ToolCalls []ToolCall
	// Usage is what the provider reported, if it did.
	Usage           *contextengine.Usage
	Provider, Model string
}

// ToolCall is one call that a model asks for.
type ToolCall struct {
	ID, Name  string
	Arguments json.RawMessage
}

// Tools are what the model may call.
type Tools interface {
	// Names are the tools that there are, always in the same order.
	Names() []string
	// Call runs a tool and returns the result as a message. A tool that failed
	// is a message too, for the model to read; an error ends the turn.
	Call(ctx context.Context, c ToolCall) (json.RawMessage, error)
}

// OverflowError says that the model refused a prompt as too large.
type OverflowError struct {
	// ObservedTokens is the size of the prompt by the provider's count; 0 where
	// it did not say.
	ObservedTokens int
	Err            error
}

func (e *OverflowError) Error() string {
	text := "context overflow"
	if e.ObservedTokens > 0 {
		text = fmt.Sprintf("context overflow at %d tokens", e.ObservedTokens)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *OverflowError) Unwrap() error { return e.Err }
