package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an engine, a model and a tool that write down what they are called
// for. Scripts say what happens; what has no script goes well.
type world struct {
	mu    sync.Mutex
	steps []string
	// onStep, if any, runs within each step.
	onStep func(ctx context.Context, n int, step string) error

	info contextengine.Info
	// model is what each model call meets in turn; the last is repeated.
	model []func(host.Request) (host.Response, error)
	asked []host.Request
	// fail are the errors of engine calls, by step.
	fail map[string]error
	// windows are what assemble answers in turn; the last is repeated.
	windows []contextengine.AssembleResult
	// compactions likewise.
	compactions []contextengine.CompactResult
	compacts    []contextengine.CompactParams
	assembles   []contextengine.AssembleParams
	commits     []contextengine.CommitTurnParams
}

func (w *world) step(ctx context.Context, name string) error {
	w.mu.Lock()
	n := len(w.steps)
	w.steps = append(w.steps, name)
	on := w.onStep
	w.mu.Unlock()
	if on != nil {
		if err := on(ctx, n, name); err != nil {
			return err
		}
	}
	return w.fail[name]
}

func (w *world) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.steps...)
}

// nth is the n-th of a script, its last from there on, else the fallback.
func nth[T any](script []T, n int, fallback T) T {
	if len(script) == 0 {
		return fallback
	}
	return script[min(n, len(script)-1)]
}

func (w *world) Info() contextengine.Info {
	if w.info.ID == "" {
		return contextengine.Info{ID: "fake", Name: "Fake", OwnsCompaction: true}
	}
	return w.info
}

func (w *world) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	return contextengine.IngestResult{Ingested: true}, w.step(ctx, "ingest "+p.IdempotencyKey)
}

func (w *world) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	w.mu.Lock()
	n := len(w.assembles)
	w.assembles = append(w.assembles, p)
	w.mu.Unlock()
	err := w.step(ctx, "assemble")
	return nth(w.windows, n, contextengine.AssembleResult{Messages: window(fmt.Sprint("window ", n)), EstimatedTokens: 10}), err
}

func (w *world) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	w.mu.Lock()
	n := len(w.compacts)
	w.compacts = append(w.compacts, p)
	w.mu.Unlock()
	err := w.step(ctx, "compact "+p.RuntimeContext.Trigger)
	return nth(w.compactions, n, compacted), err
}

var compacted = contextengine.CompactResult{OK: true, Compacted: true, Result: &contextengine.CompactionOutcome{TokensBefore: 100, TokensAfter: 10}}

// full is the world with every optional call.
type full struct{ *world }

func (w full) Bootstrap(ctx context.Context, _ contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	return contextengine.BootstrapResult{Bootstrapped: true}, w.step(ctx, "bootstrap")
}

func (w full) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return contextengine.MaintainResult{}, w.step(ctx, "maintain "+p.Reason)
}

func (w full) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	w.mu.Lock()
	w.commits = append(w.commits, p)
	w.mu.Unlock()
	return contextengine.CommitTurnResult{Status: contextengine.TurnCommitted}, w.step(ctx, "commit")
}

func (w full) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	return contextengine.AfterTurnResult{}, w.step(ctx, fmt.Sprint("after turn ", p.PrePromptMessageCount, " of ", len(p.Messages)))
}

func (w full) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	return contextengine.IngestBatchResult{}, w.step(ctx, fmt.Sprint("ingest batch ", p.IdempotencyKeys))
}

func (w *world) Complete(ctx context.Context, r host.Request) (host.Response, error) {
	w.mu.Lock()
	n := len(w.asked)
	w.asked = append(w.asked, r)
	w.mu.Unlock()
	if err := w.step(ctx, "model"); err != nil {
		return host.Response{}, err
	}
	return nth(w.model, n, answers)(r)
}

func (w *world) Names() []string { return []string{"read"} }

func (w *world) Call(ctx context.Context, c host.ToolCall) (json.RawMessage, error) {
	return json.RawMessage(`{"role":"toolResult","toolCallId":"` + c.ID + `"}`), w.step(ctx, "tool "+c.Name)
}

func answers(host.Request) (host.Response, error) {
	return host.Response{Message: json.RawMessage(`{"role":"assistant","content":"done"}`), Provider: "p", Model: "m-1"}, nil
}

func callsTool(host.Request) (host.Response, error) {
	return host.Response{
		Message: json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read"}]}`), ToolCalls: []host.ToolCall{{ID: "c1", Name: "read"}},
	}, nil
}

func overflows(host.Request) (host.Response, error) {
	return host.Response{}, fmt.Errorf("provider: %w", &host.OverflowError{ObservedTokens: 12345, Err: errors.New("413")})
}

func fails(host.Request) (host.Response, error) { return host.Response{}, errors.New("500") }

func late(host.Request) (host.Response, error) {
	return host.Response{}, fmt.Errorf("read: %w", context.DeadlineExceeded)
}

func window(texts ...string) []json.RawMessage {
	out := []json.RawMessage{}
	for _, text := range texts {
		out = append(out, json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text)))
	}
	return out
}

func newHost(t testing.TB, w *world, engine contextengine.Engine, mod ...func(*host.Config)) *host.Host {
	t.Helper()
	cfg := host.Config{Engine: engine, Model: w, Tools: w}
	for _, m := range mod {
		m(&cfg)
	}
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

func request(mod ...func(*host.TurnRequest)) host.TurnRequest {
	r := host.TurnRequest{
		Session: contextengine.Session{Tenant: "t", SessionKey: "agent:main", SessionID: "s1"}, ID: "turn-1",
		Message: json.RawMessage(`{"role":"user","content":"hi"}`), Prompt: "hi", TokenBudget: 1000, Model: "m", ContextWindow: 2000,
	}
	for _, m := range mod {
		m(&r)
	}
	return r
}
