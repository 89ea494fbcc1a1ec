// Package anthropic speaks to providers of Anthropic's messages API.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/engined/engined/internal/compact/summarize/llm"
)

// DefaultURL is Anthropic's own.
const DefaultURL = "https://api.anthropic.com"

// Config names a model.
type Config struct {
	// URL is the base without the version; empty is DefaultURL.
	URL   string
	Key   string
	Model string
	// Idle ends a stream that stands still for so long.
	Idle time.Duration
	HTTP *http.Client
}

// Client is an llm.Client.
type Client struct {
	cfg      Config
	messages anthropic.MessageService
	// plain is set once the provider has shown that it does not stream.
	plain atomic.Bool
}

// New makes a client. It reads nothing from the environment.
func New(cfg Config) *Client {
	cfg.URL = cmp.Or(strings.TrimSuffix(strings.TrimRight(cfg.URL, "/"), "/v1"), DefaultURL)
	if cfg.HTTP == nil {
		cfg.HTTP = llm.HTTPClient()
	}
	opts := []option.RequestOption{option.WithBaseURL(cfg.URL + "/"), option.WithMaxRetries(0), option.WithHTTPClient(cfg.HTTP)}
	if cfg.Key != "" {
		opts = append(opts, option.WithAPIKey(cfg.Key))
	}
	return &Client{cfg: cfg, messages: anthropic.NewMessageService(opts...)}
}

// Model implements llm.Client.
func (c *Client) Model() string { return c.cfg.Model }

// Parameters implements llm.Client.
func (c *Client) Parameters() string { return "anthropic messages " + c.cfg.Model }

// Complete implements llm.Client. It streams, so that silence is seen early; a
// provider that answers the request for a stream with nothing of one is asked
// without.
func (c *Client) Complete(ctx context.Context, call llm.Call) (llm.Reply, error) {
	params := anthropic.MessageNewParams{
		Model: c.cfg.Model, MaxTokens: int64(call.MaxTokens),
		System:   []anthropic.TextBlockParam{{Text: call.System}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(call.User))},
	}
	if !c.plain.Load() {
		reply, streams, err := c.stream(ctx, params)
		if streams || err != nil {
			return reply, err
		}
		c.plain.Store(true)
	}
	return c.whole(ctx, params)
}

func (c *Client) whole(ctx context.Context, params anthropic.MessageNewParams) (llm.Reply, error) {
	w := llm.NewWatch(ctx, 0)
	defer w.Stop()
	res, err := c.messages.New(w.Context(), params)
	if err != nil {
		return llm.Reply{}, failure(w, err)
	}
	u := res.Usage
	reply := llm.Reply{
		Model: res.Model, Finish: finish(res.StopReason), OutputTokens: u.OutputTokens,
		InputTokens: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
	}
	for _, b := range res.Content {
		if b.Type == "text" {
			reply.Text += b.Text
		}
	}
	return reply, nil
}

// stream reports false where nothing of a stream came.
func (c *Client) stream(ctx context.Context, params anthropic.MessageNewParams) (reply llm.Reply, streams bool, err error) {
	w := llm.NewWatch(ctx, c.cfg.Idle)
	defer w.Stop()
	s := c.messages.NewStreaming(w.Context(), params)
	defer s.Close()
	var text strings.Builder
	var reason anthropic.StopReason
	ended := false
	for s.Next() {
		w.Alive()
		streams = true
		switch e := s.Current().AsAny().(type) {
		case anthropic.MessageStartEvent:
			reply.Model = e.Message.Model
			u := e.Message.Usage
			reply.InputTokens = u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
			reply.OutputTokens = u.OutputTokens
		case anthropic.ContentBlockDeltaEvent:
			if e.Delta.Type == "text_delta" {
				text.WriteString(e.Delta.Text)
			}
		case anthropic.MessageDeltaEvent:
			reason = cmp.Or(e.Delta.StopReason, reason)
			reply.OutputTokens = max(reply.OutputTokens, e.Usage.OutputTokens)
		case anthropic.MessageStopEvent:
			ended = true
		}
	}
	reply.Text = text.String()
	if err := s.Err(); err != nil {
		return reply, streams, failure(w, err)
	}
	if ended {
		reply.Finish = finish(reason)
	}
	return reply, streams, nil
}

func finish(reason anthropic.StopReason) llm.Finish {
	switch reason {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return llm.FinishStop
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return llm.FinishLength
	case anthropic.StopReasonRefusal:
		return llm.FinishRefusal
	}
	return ""
}

// statuses are those that error types have outside of streams.
var statuses = map[string]int{
	"overloaded_error": 529, "rate_limit_error": http.StatusTooManyRequests, "authentication_error": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound, "invalid_request_error": http.StatusBadRequest,
	"billing_error": http.StatusPaymentRequired, "timeout_error": http.StatusGatewayTimeout,
}

// failure says in our words what went wrong; the SDK's errors may hold more than
// may be told. An error within a stream has a type and the stream's own status.
func failure(w *llm.Watch, err error) error {
	e, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return w.Broken(err)
	}
	var header http.Header
	status := e.StatusCode
	if status < http.StatusMultipleChoices {
		status = cmp.Or(statuses[string(e.Type())], http.StatusInternalServerError)
	} else if e.Response != nil {
		header = e.Response.Header
	}
	return llm.OfStatus(status, header, string(e.Type()), time.Now())
}
