// Package openai speaks to providers of the OpenAI chat completions API: OpenAI
// itself and what offers the same, such as Ollama, vLLM and gateways.
package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/llm"
)

// DefaultURL is OpenAI's own.
const DefaultURL = "https://api.openai.com/v1"

// Config names a model.
type Config struct {
	// URL is the base, with the version ("http://127.0.0.1:11434/v1"); empty is
	// DefaultURL.
	URL string
	// Key is sent as a bearer token; empty for none.
	Key   string
	Model string
	// Idle ends a stream that stands still for so long.
	Idle time.Duration
	HTTP *http.Client
}

// Client is an llm.Client.
type Client struct {
	cfg  Config
	chat openai.ChatCompletionService
	own  bool
	// plain is set once the provider has shown that it does not stream.
	plain atomic.Bool
}

// New makes a client. It reads nothing from the environment, where a key of
// another provider may be.
func New(cfg Config) *Client {
	cfg.URL = cmp.Or(strings.TrimRight(cfg.URL, "/"), DefaultURL)
	if cfg.HTTP == nil {
		cfg.HTTP = llm.HTTPClient()
	}
	opts := []option.RequestOption{option.WithBaseURL(cfg.URL + "/"), option.WithMaxRetries(0), option.WithHTTPClient(cfg.HTTP)}
	if cfg.Key != "" {
		opts = append(opts, option.WithAPIKey(cfg.Key))
	}
	u, err := url.Parse(cfg.URL)
	return &Client{cfg: cfg, chat: openai.NewChatCompletionService(opts...), own: err == nil && u.Host == "api.openai.com"}
}

// Model implements llm.Client.
func (c *Client) Model() string { return c.cfg.Model }

// Parameters implements llm.Client.
func (c *Client) Parameters() string { return "openai chat " + c.cfg.Model }

// Complete implements llm.Client. It streams, so that silence is seen early; a
// provider that answers the request for a stream with nothing of one is asked
// without.
func (c *Client) Complete(ctx context.Context, call llm.Call) (llm.Reply, error) {
	params := openai.ChatCompletionNewParams{
		Model: c.cfg.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(call.System), openai.UserMessage(call.User),
		},
	}
	// OpenAI's newer models take the one name, most others only the other.
	if c.own {
		params.MaxCompletionTokens = openai.Int(int64(call.MaxTokens))
	} else {
		params.MaxTokens = openai.Int(int64(call.MaxTokens))
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

func (c *Client) whole(ctx context.Context, params openai.ChatCompletionNewParams) (llm.Reply, error) {
	w := llm.NewWatch(ctx, 0)
	defer w.Stop()
	res, err := c.chat.New(w.Context(), params)
	if err != nil {
		return llm.Reply{}, failure(w, err)
	}
	reply := llm.Reply{Model: res.Model, InputTokens: res.Usage.PromptTokens, OutputTokens: res.Usage.CompletionTokens}
	if len(res.Choices) > 0 {
		m := res.Choices[0].Message
		reply.Text, reply.Finish = m.Content, finish(res.Choices[0].FinishReason, m.Refusal)
	}
	return reply, nil
}

// stream reports false where nothing of a stream came.
func (c *Client) stream(ctx context.Context, params openai.ChatCompletionNewParams) (reply llm.Reply, streams bool, err error) {
	w := llm.NewWatch(ctx, c.cfg.Idle)
	defer w.Stop()
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := c.chat.NewStreaming(w.Context(), params)
	defer s.Close()
	var text, refusal strings.Builder
	var reason string
	for s.Next() {
		w.Alive()
		streams = true
		chunk := s.Current()
		reply.Model = cmp.Or(reply.Model, chunk.Model)
		if chunk.Usage.PromptTokens > 0 || chunk.Usage.CompletionTokens > 0 {
			reply.InputTokens, reply.OutputTokens = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		for _, choice := range chunk.Choices {
			if choice.Index != 0 {
				continue
			}
			text.WriteString(choice.Delta.Content)
			refusal.WriteString(choice.Delta.Refusal)
			reason = cmp.Or(choice.FinishReason, reason)
		}
	}
	reply.Text = text.String()
	if err := s.Err(); err != nil {
		return reply, streams, failure(w, err)
	}
	reply.Finish = finish(reason, refusal.String())
	return reply, streams, nil
}

func finish(reason, refusal string) llm.Finish {
	switch {
	case refusal != "" || reason == "content_filter":
		return llm.FinishRefusal
	case reason == "stop":
		return llm.FinishStop
	case reason == "length":
		return llm.FinishLength
	}
	return ""
}

// failure says in our words what went wrong; the SDK's errors may hold more than
// may be told.
func failure(w *llm.Watch, err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		var header http.Header
		if e.Response != nil {
			header = e.Response.Header
		}
		return llm.OfStatus(e.StatusCode, header, cmp.Or(e.Code, e.Type), time.Now())
	}
	if _, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return &summarize.Failure{Fault: summarize.FaultDown, Err: errors.New("the provider reported an error within the stream")}
	}
	return w.Broken(err)
}
