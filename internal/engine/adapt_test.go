package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// batcher knows batches and heeds keys; hearer hears of turns and nothing more.
type (
	batcher struct {
		*bare
		batches []contextengine.IngestBatchParams
		known   map[string]bool
	}
	hearer struct {
		*bare
		turns []contextengine.AfterTurnParams
	}
	// mute stands for another engine that lacks all that it claims to have.
	mute struct{ *script }
)

func (b *batcher) IngestBatch(_ context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	b.batches = append(b.batches, p)
	res := contextengine.IngestBatchResult{Seqs: make([]int64, len(p.Messages))}
	for i := range p.Messages {
		if i < len(p.IdempotencyKeys) && b.known[p.IdempotencyKeys[i]] {
			continue
		}
		if i < len(p.IdempotencyKeys) {
			b.known[p.IdempotencyKeys[i]] = true
		}
		res.IngestedCount++
	}
	return res, nil
}

func (h *hearer) AfterTurn(_ context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	h.turns = append(h.turns, p)
	return contextengine.AfterTurnResult{Compaction: contextengine.CompactionScheduled}, nil
}

var errLacking = fmt.Errorf("the engine behind this one: %w", errors.ErrUnsupported)

func (mute) Bootstrap(context.Context, contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	return contextengine.BootstrapResult{}, errLacking
}

func (mute) IngestBatch(context.Context, contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	return contextengine.IngestBatchResult{}, errLacking
}

func (mute) CommitTurn(context.Context, contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	return contextengine.CommitTurnResult{}, errLacking
}

func (mute) AfterTurn(context.Context, contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	return contextengine.AfterTurnResult{}, errLacking
}

func (mute) Maintain(context.Context, contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return contextengine.MaintainResult{}, errLacking
}

func (mute) PrepareSubagentSpawn(context.Context, contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	return nil, errLacking
}

func (mute) OnSubagentEnded(context.Context, contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	return contextengine.SubagentEndedResult{}, errLacking
}

// TestF077WithoutAfterTurnOnlyNewMessagesAreIngested: in a batch where the
// engine knows batches, else one by one; behind the fence; heartbeats marked.
func TestF077WithoutAfterTurnOnlyNewMessagesAreIngested(t *testing.T) {
	t.Parallel()
	head := new(int64(7))
	turn := contextengine.AfterTurnParams{
		Session: on("s"), Expectations: contextengine.Expectations{ExpectedHead: head}, IsHeartbeat: true,
		Messages: []json.RawMessage{said("old"), said("a"), said("b")}, PrePromptMessageCount: 1,
	}
	t.Run("one by one", func(t *testing.T) {
		t.Parallel()
		one, other := named("acme"), whole("acme")
		for name, tc := range map[string]struct {
			e    contextengine.Engine
			seen *bare
		}{
			"a bare engine":                {one, one},
			"one that answers unsupported": {mute{other}, other.bare},
		} {
			d := deskOf(t, tc.e)
			res, err := d.slot.AfterTurn(t.Context(), turn)
			if err != nil || res.IngestedCount != 2 || res.Head != 2 || res.Compaction != contextengine.CompactionNone {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			want := []contextengine.IngestParams{
				{Session: on("s"), Expectations: turn.Expectations, Message: said("a"), IsHeartbeat: true},
				{Session: on("s"), Message: said("b"), IsHeartbeat: true},
			}
			if diff := cmp.Diff(want, tc.seen.ingested); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			d.noneAside(t)
		}
	})
	t.Run("in a batch", func(t *testing.T) {
		t.Parallel()
		e := &batcher{bare: named("acme"), known: map[string]bool{}}
		d := deskOf(t, e)
		if _, err := d.slot.AfterTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		want := []contextengine.IngestBatchParams{{Session: on("s"), Expectations: turn.Expectations, IsHeartbeat: true, Messages: []json.RawMessage{said("a"), said("b")}}}
		if diff := cmp.Diff(want, e.batches); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nothing new", func(t *testing.T) {
		t.Parallel()
		e := named("acme")
		d := deskOf(t, e)
		nothing := turn
		nothing.PrePromptMessageCount = 3
		if _, err := d.slot.AfterTurn(t.Context(), nothing); err != nil || len(e.calls()) != 0 {
			t.Errorf("%v, %v", err, e.calls())
		}
	})
	t.Run("a fence that cannot be", func(t *testing.T) {
		t.Parallel()
		for _, n := range []int{-1, 4} {
			d := deskOf(t, named("acme"))
			odd := turn
			odd.PrePromptMessageCount = n
			_, err := d.slot.AfterTurn(t.Context(), odd)
			var invalid *contextengine.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != "prePromptMessageCount" {
				t.Errorf("%d: %v", n, err)
			}
			d.noneAside(t)
		}
	})
}

func TestABatchStopsAtTheFirstError(t *testing.T) {
	t.Parallel()
	e := named("acme")
	e.does(func(context.Context, engine.Operation) error { return &contextengine.InvalidError{Field: "message"} })
	d := deskOf(t, e)
	_, err := d.slot.IngestBatch(t.Context(), contextengine.IngestBatchParams{
		Session: on("s"), Messages: []json.RawMessage{said("a"), said("b")}, IdempotencyKeys: []string{"k1", "k2"},
	})
	var invalid *contextengine.InvalidError
	if !errors.As(err, &invalid) || len(e.ingested) != 1 || e.ingested[0].IdempotencyKey != "k1" {
		t.Errorf("%v after %+v", err, e.ingested)
	}
}

// TestTurnsAreIngestedWhereTheEngineDoesNotCommitThem: once, if it heeds keys.
func TestTurnsAreIngestedWhereTheEngineDoesNotCommitThem(t *testing.T) {
	t.Parallel()
	turn := contextengine.CommitTurnParams{
		Session: on("s"), AdvancementKey: "turn-1", IsHeartbeat: true, TokenBudget: new(1000),
		Messages: []json.RawMessage{said("a"), said("b")},
	}
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		e := &batcher{bare: named("acme"), known: map[string]bool{}}
		d := deskOf(t, e)
		for _, want := range []contextengine.TurnStatus{contextengine.TurnCommitted, contextengine.TurnDuplicate} {
			res, err := d.slot.CommitTurn(t.Context(), turn)
			if err != nil || res.Status != want {
				t.Errorf("%+v, %v, want %s", res, err, want)
			}
		}
		if got := e.batches[0]; !got.IsHeartbeat || cmp.Diff([]string{"turn-1/0", "turn-1/1"}, got.IdempotencyKeys) != "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("the end of the turn is told", func(t *testing.T) {
		t.Parallel()
		e := &hearer{bare: named("acme")}
		d := deskOf(t, e)
		res, err := d.slot.CommitTurn(t.Context(), turn)
		if err != nil || res.Status != contextengine.TurnCommitted || res.Compaction != contextengine.CompactionScheduled || res.Head != 2 {
			t.Errorf("%+v, %v", res, err)
		}
		if len(e.turns) != 1 || e.turns[0].PrePromptMessageCount != 2 || *e.turns[0].TokenBudget != 1000 || !e.turns[0].IsHeartbeat {
			t.Errorf("%+v", e.turns)
		}
	})
}

func TestEveryCallWorksForABareEngine(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]contextengine.Engine{"bare": named("acme"), "mute": mute{whole("acme")}} {
		d := deskOf(t, e)
		for _, c := range guardedCalls() {
			if c.op == engine.OpPrepare {
				p, err := d.slot.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{Session: on("s"), ChildSessionKey: "c"})
				if p != nil || err != nil {
					t.Errorf("%s: prepared %+v, %v", name, p, err)
				}
				continue
			}
			if _, err := c.do(t.Context(), d.slot); err != nil {
				t.Errorf("%s: %s: %v", name, c.op, err)
			}
		}
		d.noneAside(t)
	}
}

func TestStepsGoToTheDefaultEngineWhereTheOtherHasNone(t *testing.T) {
	t.Parallel()
	d := deskOf(t, named("acme"))
	if res, err := d.slot.Rewind(t.Context(), on("s"), 1); err != nil || res.Epoch != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff([]engine.Operation{engine.OpRewind}, d.fallback.calls()); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownEndReasonsAreTheCallersFault(t *testing.T) {
	t.Parallel()
	e := whole("acme")
	d := deskOf(t, e)
	_, err := d.slot.OnSubagentEnded(t.Context(), contextengine.SubagentEndedParams{Session: on("s"), Reason: "lost"})
	var invalid *contextengine.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "reason" || len(e.calls()) != 0 {
		t.Errorf("%v, %v", err, e.calls())
	}
}

// everything is a window's parameters with all that a host may add.
func everything() contextengine.AssembleParams {
	return contextengine.AssembleParams{
		Session: on("key"), Prompt: "hello", Model: "m", Messages: []json.RawMessage{said("a")}, AvailableTools: []string{"read"},
		SessionTarget: &contextengine.SessionTarget{AgentID: "main"}, RuntimeSettings: &contextengine.RuntimeSettings{SchemaVersion: 1},
		RuntimeContext: &contextengine.RuntimeContext{ModelID: "m", TokenBudget: new(5)},
	}
}

// TestF019F020AcceptedHostParams: declared, exactly those pass; undeclared, all.
func TestF019F020AcceptedHostParams(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		declared []contextengine.HostParam
		want     func(*contextengine.AssembleParams)
	}{
		"undeclared": {nil, func(*contextengine.AssembleParams) {}},
		"none": {[]contextengine.HostParam{}, func(p *contextengine.AssembleParams) {
			p.SessionKey, p.Prompt, p.SessionTarget, p.RuntimeSettings, p.RuntimeContext = "", "", nil, nil, nil
		}},
		"two": {[]contextengine.HostParam{contextengine.ParamPrompt, contextengine.ParamSessionKey}, func(p *contextengine.AssembleParams) {
			p.SessionTarget, p.RuntimeSettings, p.RuntimeContext = nil, nil, nil
		}},
		"one": {[]contextengine.HostParam{contextengine.ParamRuntimeContext}, func(p *contextengine.AssembleParams) {
			p.SessionKey, p.Prompt, p.SessionTarget, p.RuntimeSettings = "", "", nil, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := named("acme")
			e.info.AcceptedHostParams = tc.declared
			d := deskOf(t, e)
			sent := everything()
			if _, err := d.slot.Assemble(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			want := everything()
			tc.want(&want)
			if diff := cmp.Diff(want, e.windows[0]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(everything(), sent); diff != "" {
				t.Errorf("the caller's own changed: %s", diff)
			}
		})
	}
}

// TestF021ValidatorFailuresAreNotRetried: declining a parameter by an error is
// a failure like any other.
func TestF021ValidatorFailuresAreNotRetried(t *testing.T) {
	t.Parallel()
	e := named("acme")
	e.does(func(context.Context, engine.Operation) error { return errors.New(`unrecognized_keys: "prompt"`) })
	d := deskOf(t, e)
	if got := who(t, d.slot); got != engine.LegacyID || len(e.calls()) != 1 {
		t.Errorf("%s answers after %v", got, e.calls())
	}
	if q := d.aside(t); q.Operation != engine.OpAssemble {
		t.Errorf("%+v", q)
	}
}

// vandal changes whatever it is given, and then fails.
type vandal struct{ *bare }

func (v vandal) Assemble(_ context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	copy(p.Messages[0], "xxxxxxxx")
	p.Messages[0], p.AvailableTools[0] = nil, "rm"
	p.RuntimeSettings.SchemaVersion, *p.RuntimeContext.TokenBudget, p.SessionTarget.AgentID = 9, 9, "other"
	return contextengine.AssembleResult{}, errors.New("boom")
}

// TestF022F069F075EnginesCannotChangeWhatTheyAreGiven: the default engine
// answers the call as the caller made it.
func TestF022F069F075EnginesCannotChangeWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	d := deskOf(t, vandal{named("acme")})
	sent := everything()
	if _, err := d.slot.Assemble(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everything(), sent); diff != "" {
		t.Errorf("the caller's own changed: %s", diff)
	}
	if diff := cmp.Diff(everything(), d.fallback.windows[0]); diff != "" {
		t.Errorf("the default engine's changed: %s", diff)
	}
}
