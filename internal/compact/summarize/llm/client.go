// Package llm makes a summarizer out of a model: it redacts and frames the
// source, asks, checks what came back and asks once more where the answer falls
// short. What speaks to a provider is a Client; see packages openai, anthropic
// and hosted.
package llm

import (
	"context"
	"errors"
)

// Finish is why an answer ended, in the words of no provider.
type Finish string

// The reasons of an ending. Anything else, "" included, is an answer that was
// cut.
const (
	FinishStop    Finish = "stop"
	FinishLength  Finish = "length"
	FinishRefusal Finish = "refusal"
)

// Call is one question to a model.
type Call struct {
	System, User string
	MaxTokens    int
}

// Reply is a model's answer. Token counts are the provider's, 0 where it told
// none.
type Reply struct {
	Text                      string
	Model                     string
	Finish                    Finish
	InputTokens, OutputTokens int64
}

// Client speaks to one model of one provider. It asks once: trying again is for
// others to decide. Errors are *summarize.Failure with a fault of the provider;
// they hold no key and no text of the conversation. A reply beside an error is what came
// before it, and tells what was used.
type Client interface {
	Complete(ctx context.Context, c Call) (Reply, error)
	// Model is the name that is asked for.
	Model() string
	// Parameters names everything else that shapes an answer.
	Parameters() string
}

// What is wrong with a reply, beside what summarize.Accept says.
var (
	// ErrRefusal: the model or a filter declined.
	ErrRefusal = errors.New("the model declined to answer")
	// ErrTruncated: the answer hit the limit of tokens.
	ErrTruncated = errors.New("the answer was cut at its limit of tokens")
	// ErrCut: the answer ended without saying that it was complete.
	ErrCut = errors.New("the answer broke off")
	// ErrUnframed: the answer does not end as it was told to, so it is not
	// complete or follows something else than the request.
	ErrUnframed = errors.New("the answer does not end with the line it was told to end with")
)
