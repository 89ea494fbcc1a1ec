package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// bare is an engine with what the contract requires and nothing else. Each call
// is noted and then does what the test's act says; without one it succeeds.
type bare struct {
	info contextengine.Info
	act  func(ctx context.Context, op engine.Operation) error
	// hostile engines act when they are disposed of as well.
	hostile bool
	// assembled and committed replace results.
	assembled *contextengine.AssembleResult
	compacted *contextengine.CompactResult

	mu       sync.Mutex
	ops      []engine.Operation
	ingested []contextengine.IngestParams
	windows  []contextengine.AssembleParams
	disposed int
}

func named(id string) *bare {
	return &bare{info: contextengine.Info{ID: id, Name: "engine " + id}}
}

func (b *bare) note(ctx context.Context, op engine.Operation) error {
	b.mu.Lock()
	b.ops = append(b.ops, op)
	act := b.act
	b.mu.Unlock()
	if act == nil || op == engine.OpDispose && !b.hostile {
		return nil
	}
	return act(ctx, op)
}

// does changes what the engine's calls do.
func (b *bare) does(act func(ctx context.Context, op engine.Operation) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.act = act
}

func (b *bare) calls() []engine.Operation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ops)
}

func (b *bare) ends() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disposed
}

func (b *bare) Info() contextengine.Info { return b.info }

func (b *bare) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	b.mu.Lock()
	b.ingested = append(b.ingested, p)
	n := int64(len(b.ingested))
	b.mu.Unlock()
	return contextengine.IngestResult{Ingested: true, Seq: n, Head: n, Epoch: 1}, b.note(ctx, engine.OpIngest)
}

func (b *bare) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	b.mu.Lock()
	b.windows = append(b.windows, p)
	b.mu.Unlock()
	err := b.note(ctx, engine.OpAssemble)
	if b.assembled != nil {
		return *b.assembled, err
	}
	return contextengine.AssembleResult{Messages: []json.RawMessage{said(b.info.ID)}, EstimatedTokens: 1}, err
}

func (b *bare) Compact(ctx context.Context, _ contextengine.CompactParams) (contextengine.CompactResult, error) {
	err := b.note(ctx, engine.OpCompact)
	if b.compacted != nil {
		return *b.compacted, err
	}
	return contextengine.CompactResult{OK: true, Reason: b.info.ID}, err
}

// said is a message that tells who answered.
func said(text string) json.RawMessage {
	return json.RawMessage(`{"role":"user","content":"` + text + `"}`)
}

// disposable counts its disposals.
type disposable struct{ *bare }

func (d disposable) Dispose(ctx context.Context) error {
	err := d.note(ctx, engine.OpDispose)
	d.mu.Lock()
	d.disposed++
	d.mu.Unlock()
	return err
}

// script is an engine with every call of the contract and the steps.
type script struct {
	disposable
	committed *contextengine.CommitTurnResult
	batched   *contextengine.IngestBatchResult
	rollback  func(context.Context) error
}

func whole(id string) *script { return &script{disposable: disposable{named(id)}} }

func (s *script) Bootstrap(ctx context.Context, _ contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	return contextengine.BootstrapResult{Bootstrapped: true, Reason: s.info.ID}, s.note(ctx, engine.OpBootstrap)
}

func (s *script) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	err := s.note(ctx, engine.OpIngestBatch)
	if s.batched != nil {
		return *s.batched, err
	}
	return contextengine.IngestBatchResult{IngestedCount: len(p.Messages), Seqs: make([]int64, len(p.Messages))}, err
}

func (s *script) CommitTurn(ctx context.Context, _ contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	err := s.note(ctx, engine.OpCommitTurn)
	if s.committed != nil {
		return *s.committed, err
	}
	return contextengine.CommitTurnResult{Status: contextengine.TurnCommitted}, err
}

func (s *script) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	return contextengine.AfterTurnResult{IngestedCount: len(p.Messages) - p.PrePromptMessageCount}, s.note(ctx, engine.OpAfterTurn)
}

func (s *script) Maintain(ctx context.Context, _ contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return contextengine.MaintainResult{Reason: s.info.ID}, s.note(ctx, engine.OpMaintain)
}

func (s *script) PrepareSubagentSpawn(ctx context.Context, _ contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	err := s.note(ctx, engine.OpPrepare)
	return &contextengine.SubagentPreparation{PreparationID: s.info.ID, Rollback: s.rollback}, err
}

func (s *script) OnSubagentEnded(ctx context.Context, _ contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	return contextengine.SubagentEndedResult{Ended: true}, s.note(ctx, engine.OpEnded)
}

func (s *script) Reset(ctx context.Context, _ contextengine.Session, _ *int64, _ string) (contextengine.StepResult, error) {
	return contextengine.StepResult{Epoch: 2}, s.note(ctx, engine.OpReset)
}

func (s *script) Rewind(ctx context.Context, _ contextengine.Session, _ int64) (contextengine.StepResult, error) {
	return contextengine.StepResult{Epoch: 2}, s.note(ctx, engine.OpRewind)
}

func (s *script) UndoCompaction(ctx context.Context, _ contextengine.Session, _ *int64) (contextengine.StepResult, error) {
	return contextengine.StepResult{Epoch: 2}, s.note(ctx, engine.OpUndo)
}

// desk is a registry with a default engine and one other in its slot.
type desk struct {
	*engine.Registry
	fallback *script
	slot     *engine.Guard
}

// began is when the tests' clock stands.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func deskOf(t *testing.T, e contextengine.Engine, mod ...func(*engine.Registration)) *desk {
	t.Helper()
	d := &desk{
		Registry: engine.NewRegistry(engine.RegistryConfig{Now: func() time.Time { return began }}),
		fallback: whole(engine.LegacyID),
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	d.register(t, engine.Registration{ID: engine.LegacyID, Owner: engine.CoreOwner, Factory: always(d.fallback)})
	reg := engine.Registration{ID: "acme", Owner: "remote:acme", Factory: always(e)}
	for _, m := range mod {
		m(&reg)
	}
	d.register(t, reg)
	d.slot = d.Slot(reg.ID)
	return d
}

func always(e contextengine.Engine) engine.Factory {
	return func(context.Context) (contextengine.Engine, error) { return e, nil }
}

func (d *desk) register(t *testing.T, r engine.Registration) {
	t.Helper()
	if err := d.Register(r); err != nil {
		t.Fatal(err)
	}
}

// aside is the one quarantine that there must be.
func (d *desk) aside(t *testing.T) engine.Quarantine {
	t.Helper()
	qs := d.Quarantines()
	if len(qs) != 1 {
		t.Fatalf("quarantines %+v, want one", qs)
	}
	return qs[0]
}

func (d *desk) noneAside(t *testing.T) {
	t.Helper()
	if qs := d.Quarantines(); len(qs) != 0 {
		t.Errorf("set aside: %+v", qs)
	}
}

// who tells which engine assembles now.
func who(t *testing.T, g *engine.Guard) string {
	t.Helper()
	res, err := g.Assemble(t.Context(), contextengine.AssembleParams{Session: on("s")})
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Content string }
	if err := json.Unmarshal(res.Messages[0], &m); err != nil {
		t.Fatal(err)
	}
	return m.Content
}
