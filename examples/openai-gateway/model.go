package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/host"
)

// chatModel speaks OpenAI's chat completions. The messages of a session are in
// that dialect and pass through as they are.
type chatModel struct {
	base, key string
	// pause before a call is made again; doubled each time. Default 1 s.
	pause time.Duration
}

const (
	maxAnswer = 32 << 20
	maxTries  = 3
)

type chatRequest struct {
	Model    string            `json:"model"`
	Messages []json.RawMessage `json:"messages"`
	Tools    []chatTool        `json:"tools,omitempty"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type chatAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		Message json.RawMessage `json:"message"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// statusError is what a provider answers instead.
type statusError struct {
	status  int
	Code    any    `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.Message) }

// Complete makes one model call, again after a transient failure.
func (m *chatModel) Complete(ctx context.Context, r host.Request) (host.Response, error) {
	prompt, err := json.Marshal(map[string]string{"role": "system", "content": strings.TrimSpace(r.System + "\n\n" + r.SystemAddition)})
	if err != nil {
		return host.Response{}, err
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(chatRequest{Model: r.Model, Messages: append([]json.RawMessage{prompt}, r.Messages...), Tools: describe(r.Tools)}); err != nil {
		return host.Response{}, err
	}
	pause := cmp.Or(m.pause, time.Second)
	for try := 1; ; try++ {
		raw, err := m.post(ctx, body.Bytes())
		if err == nil {
			return readAnswer(raw)
		}
		var status *statusError
		if try == maxTries || !errors.As(err, &status) || (status.status != http.StatusTooManyRequests && status.status < 500) {
			return host.Response{}, overflowOf(err)
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return host.Response{}, ctx.Err()
		}
	}
}

func (m *chatModel) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.base, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if m.key != "" {
		req.Header.Set("Authorization", "Bearer "+m.key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return raw, nil
	}
	failure := struct {
		Error *statusError `json:"error"`
	}{}
	if json.Unmarshal(raw, &failure) != nil || failure.Error == nil {
		failure.Error = &statusError{Message: string(raw[:min(len(raw), 300)])}
	}
	failure.Error.status = res.StatusCode
	return nil, failure.Error
}

func readAnswer(raw []byte) (host.Response, error) {
	var a chatAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return host.Response{}, fmt.Errorf("the model's answer: %w", err)
	}
	if len(a.Choices) == 0 {
		return host.Response{}, errors.New("the model's answer has no choices")
	}
	res := host.Response{Message: a.Choices[0].Message, Provider: "openai", Model: a.Model}
	if u := a.Usage; u != nil {
		res.Usage = &contextengine.Usage{Input: u.PromptTokens - u.Details.CachedTokens, CacheRead: u.Details.CachedTokens, Output: u.CompletionTokens}
	}
	var message struct {
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(res.Message, &message); err != nil {
		return host.Response{}, fmt.Errorf("the model's message: %w", err)
	}
	for _, c := range message.ToolCalls {
		res.ToolCalls = append(res.ToolCalls, host.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments)})
	}
	return res, nil
}

// observed finds the prompt's size in what providers say of one too large.
var observed = regexp.MustCompile(`(?i)(?:resulted in|requested|too long:|input is|prompt is|\()\s*(?:about )?([0-9]{3,9}) (?:input )?tokens`)

// overflowOf tells a prompt that is too large from other refusals. A limit per
// minute is not the prompt's fault.
func overflowOf(err error) error {
	var status *statusError
	if !errors.As(err, &status) {
		return err
	}
	text := strings.ToLower(fmt.Sprint(status.Code, " ", status.Type, " ", status.Message))
	tooLarge := strings.Contains(text, "context_length_exceeded") || strings.Contains(text, "maximum context length") ||
		strings.Contains(text, "context size") || strings.Contains(text, "prompt is too long") || strings.Contains(text, "context window")
	if !tooLarge || strings.Contains(text, "per min") || status.status == http.StatusTooManyRequests {
		return err
	}
	overflow := &host.OverflowError{Err: err}
	if m := observed.FindStringSubmatch(status.Message); m != nil {
		overflow.ObservedTokens, _ = strconv.Atoi(m[1]) // at most nine digits
	}
	return overflow
}
