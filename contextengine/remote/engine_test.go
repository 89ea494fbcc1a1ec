package remote_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is an engine that keeps what it is called with and answers with what
// it is told.
type recorder struct {
	mu     sync.Mutex
	params any
	answer any
	err    error
	// during, if any, runs within each call.
	during func(ctx context.Context)
}

func (r *recorder) Info() contextengine.Info {
	return contextengine.Info{
		ID: "rec", Name: "Recorder <&>", Version: "3", OwnsCompaction: true, AcceptedHostParams: []contextengine.HostParam{},
		TranscriptSemantics: &contextengine.TranscriptSemantics{CurrentTurnFence: contextengine.FenceBeforeCurrentTurn},
		TurnMaintenanceMode: contextengine.BackgroundMaintenance,
		HostRequirements: map[contextengine.HostOperation]contextengine.HostRequirement{
			contextengine.OpAgentRun: {RequiredCapabilities: []contextengine.Capability{contextengine.CapCompact}, UnsupportedMessage: "no"},
		},
	}
}

func (r *recorder) tell(answer any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.err, r.params = answer, err, nil
}

func (r *recorder) heard() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.params
}

func record[R, P any](ctx context.Context, r *recorder, p P) (R, error) {
	if r.during != nil {
		r.during(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.params = p
	res, _ := r.answer.(R)
	return res, r.err
}

func (r *recorder) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	return record[contextengine.IngestResult](ctx, r, p)
}

func (r *recorder) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	return record[contextengine.IngestBatchResult](ctx, r, p)
}

func (r *recorder) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	return record[contextengine.BootstrapResult](ctx, r, p)
}

func (r *recorder) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	return record[contextengine.CommitTurnResult](ctx, r, p)
}

func (r *recorder) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	return record[contextengine.AfterTurnResult](ctx, r, p)
}

func (r *recorder) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	return record[contextengine.AssembleResult](ctx, r, p)
}

func (r *recorder) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	return record[contextengine.CompactResult](ctx, r, p)
}

func (r *recorder) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return record[contextengine.MaintainResult](ctx, r, p)
}

// bare has the required methods alone.
type bare struct{ contextengine.Engine }

// serve puts an engine behind a port and a client before it.
func serve(t testing.TB, e contextengine.Engine, o remote.HandlerOptions, mod ...func(*remote.Config)) *remote.Client {
	t.Helper()
	server := httptest.NewServer(remote.Handler(e, o))
	t.Cleanup(server.Close)
	return connect(t, server.URL, mod...)
}

func connect(t testing.TB, url string, mod ...func(*remote.Config)) *remote.Client {
	t.Helper()
	cfg := remote.Config{URL: url}
	for _, m := range mod {
		m(&cfg)
	}
	c, err := remote.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func on(key string) contextengine.Session { return contextengine.Session{SessionKey: key} }
