package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider is a fake of the chat completions API.
type provider struct {
	mu      sync.Mutex
	answers []string
	asked   []string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "wrong call", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, string(body))
	status, answer := http.StatusOK, p.answers[0]
	p.answers = p.answers[1:]
	if n, err := fmt.Sscanf(answer, "%d ", &status); n == 1 && err == nil {
		_, answer, _ = strings.Cut(answer, " ")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func says(text string) string {
	return fmt.Sprintf(`{"model":"m-1","choices":[{"message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":50,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":20}}}`, text)
}

const (
	callsNow = `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]}}]}`
	tooLarge = `400 {"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."}}`
)

// notes is an engine that keeps messages and forgets the older half on demand.
type notes struct {
	mu       sync.Mutex
	messages []json.RawMessage
	observed []int
}

func (*notes) Info() contextengine.Info {
	return contextengine.Info{ID: "notes", Name: "Notes", OwnsCompaction: true}
}

func (n *notes) Ingest(_ context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages = append(n.messages, p.Message)
	return contextengine.IngestResult{Ingested: true}, nil
}

func (n *notes) Assemble(context.Context, contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return contextengine.AssembleResult{Messages: append([]json.RawMessage{}, n.messages...)}, nil
}

func (n *notes) Compact(_ context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observed = append(n.observed, *p.CurrentTokenCount)
	n.messages = n.messages[len(n.messages)/2:]
	return contextengine.CompactResult{OK: true, Compacted: true, Result: &contextengine.CompactionOutcome{TokensBefore: 2, TokensAfter: 1}}, nil
}

func TestConversation(t *testing.T) {
	t.Parallel()
	p := &provider{answers: []string{says("Hello."), callsNow, says("It is late."), tooLarge, says("Better now."), "503 busy", says("Back again.")}}
	server := httptest.NewServer(p)
	defer server.Close()
	engine := &notes{}
	wire := httptest.NewServer(remote.Handler(engine, remote.HandlerOptions{}))
	defer wire.Close()
	client, err := remote.Connect(t.Context(), remote.Config{URL: wire.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out strings.Builder
	g := gateway{model: "m", session: "agent:test", window: 100_000, reserve: 1000}
	in := strings.NewReader("Hi there\nWhat time is it?\n\nAnd a long one.\nStill there?\n")
	err = g.run(t.Context(), client, &chatModel{base: server.URL + "/v1/", key: "secret", pause: time.Millisecond}, in, &out)
	http.DefaultClient.CloseIdleConnections()
	if err != nil {
		t.Fatal(err)
	}
	if want := "Hello.\nIt is late.\nBetter now.\nBack again.\n"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
	for n, want := range []string{
		`"content":"Hi there"`, `"content":"What time is it?"`, `"tool_call_id":"call_1"`, `"content":"And a long one."`, `"content":"And a long one."`,
	} {
		if !strings.Contains(p.asked[n], want) {
			t.Errorf("call %d does not hold %s: %s", n, want, p.asked[n])
		}
	}
	if !strings.Contains(p.asked[3], "Hi there") || strings.Contains(p.asked[4], "Hi there") {
		t.Error("the window did not become smaller after the overflow")
	}
	if len(engine.observed) != 1 || engine.observed[0] != 5000 {
		t.Errorf("the engine heard of %v tokens", engine.observed)
	}
}

func TestOverflowsAreTold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status  int
		code    any
		message string
		tokens  int // -1: not an overflow
	}{
		{400, "context_length_exceeded", "resulted in 130000 tokens", 130000},
		{400, nil, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages)", 5000},
		{400, 400, "prompt is too long: 200100 tokens > 200000 maximum", 200100},
		{400, nil, "the request exceeds the available context size", 0},
		{429, "rate_limit_exceeded", "Request too large: context window, 90000 tokens per min", -1},
		{401, "invalid_api_key", "no", -1},
	} {
		var overflow *host.OverflowError
		is := errors.As(overflowOf(&statusError{status: tc.status, Code: tc.code, Message: tc.message}), &overflow)
		if is != (tc.tokens >= 0) || is && overflow.ObservedTokens != tc.tokens {
			t.Errorf("%s: %v %+v", tc.message, is, overflow)
		}
	}
}
