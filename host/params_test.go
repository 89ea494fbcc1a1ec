package host_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/host"
)

func TestTheModelIsSentTheWindowAndTheTurn(t *testing.T) {
	t.Parallel()
	w := &world{model: script{callsTool, answers}, windows: []contextengine.AssembleResult{{Messages: window("old"), SystemPromptAddition: "addition"}}}
	res, err := newHost(t, w, full{w}).Turn(t.Context(), request(func(r *host.TurnRequest) { r.System = "system" }))
	if err != nil {
		t.Fatal(err)
	}
	turn := []json.RawMessage{
		json.RawMessage(`{"role":"user","content":"hi"}`), json.RawMessage(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read"}]}`),
		json.RawMessage(`{"role":"toolResult","toolCallId":"c1"}`), json.RawMessage(`{"role":"assistant","content":"done"}`),
	}
	want := []host.Request{
		{Model: "m", System: "system", SystemAddition: "addition", Tools: []string{"read"}, Messages: append(window("old"), turn[:1]...)},
		{Model: "m", System: "system", SystemAddition: "addition", Tools: []string{"read"}, Messages: append(window("old"), turn[:3]...)},
	}
	if diff := cmp.Diff(want, w.asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(turn, res.Messages); diff != "" {
		t.Error(diff)
	}
	c := w.commits[0]
	if diff := cmp.Diff(turn, c.Messages); diff != "" || c.AdvancementKey != "turn-1" || c.RuntimeContext.ModelID != "m-1" || *c.TokenBudget != 1000 {
		t.Errorf("commit: %+v %s", c, diff)
	}
	// The turn's own messages leave the window less room each time.
	if a := w.assembles; len(a) != 2 || *a[0].TokenBudget >= 1000 || *a[1].TokenBudget >= *a[0].TokenBudget || a[0].Prompt != "hi" {
		t.Errorf("assemble: %+v", a)
	}
}

func TestACompactionIsToldWhatHappened(t *testing.T) {
	t.Parallel()
	moved := compacted
	moved.Result = &contextengine.CompactionOutcome{SessionID: "s2"}
	w := &world{model: script{overflows, answers}, compactions: []contextengine.CompactResult{moved}}
	res, err := newHost(t, w, full{w}).Turn(t.Context(), request(func(r *host.TurnRequest) { r.History = window("old") }))
	if err != nil {
		t.Fatal(err)
	}
	p := w.compacts[0]
	if !p.Force || p.CompactionTarget != contextengine.TargetBudget || *p.CurrentTokenCount != 12345 || *p.TokenBudget > 1000 ||
		p.RuntimeContext.Attempt != 1 || p.RuntimeContext.MaxAttempts != 3 ||
		p.RuntimeSettings.Runtime.Mode != contextengine.RuntimeDegraded || *p.RuntimeSettings.Diagnostics.DegradedReason != contextengine.DiagnosticOverflow {
		t.Errorf("%+v", p)
	}
	// The session has moved, and the uncompacted history is no hint any more.
	if a := w.assembles; a[0].SessionID != "s1" || a[1].SessionID != "s2" || len(a[0].Messages) != 1 || len(a[1].Messages) != 0 {
		t.Errorf("assemble: %+v", a)
	}
	if res.Session.SessionID != "s2" || w.commits[0].SessionID != "s2" || res.Compactions != 1 || res.ModelCalls != 2 {
		t.Errorf("%+v", res)
	}
}

func TestAnEngineIsGivenOnlyWhatItAccepts(t *testing.T) {
	t.Parallel()
	w := &world{info: contextengine.Info{ID: "x", Name: "x", AcceptedHostParams: []contextengine.HostParam{}}}
	if _, err := newHost(t, w, full{w}).Turn(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if a, c := w.assembles[0], w.commits[0]; a.Prompt != "" || a.RuntimeSettings != nil || a.RuntimeContext != nil || c.RuntimeContext != nil {
		t.Errorf("%+v %+v", a, c)
	}
}

func TestTheGatewaysHistoryServesWhereTheEngineDoesNot(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(*world){
		"assemble fails":       func(w *world) { w.fail = map[string]error{"assemble": errBroken} },
		"a window of no shape": func(w *world) { w.windows = []contextengine.AssembleResult{{}} },
	} {
		w := &world{}
		bad(w)
		r := request(func(r *host.TurnRequest) { r.History = window("held by the gateway") })
		if _, err := newHost(t, w, full{w}).Turn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(window("held by the gateway"), r.Message), w.asked[0].Messages); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAFailedCommitCanBeMadeAgain with what the turn returned.
func TestAFailedCommitCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	w := &world{fail: map[string]error{"commit": errBroken}}
	h := newHost(t, w, full{w})
	res, err := h.Turn(t.Context(), request(func(r *host.TurnRequest) { r.IsHeartbeat = true }))
	if err != nil || !errors.Is(res.CommitErr, errBroken) {
		t.Fatalf("%v, commit %v", err, res.CommitErr)
	}
	w.fail = nil
	if err := h.Commit(t.Context(), res.Turn); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(w.commits[0], w.commits[1]); diff != "" || !w.commits[0].IsHeartbeat {
		t.Errorf("the second commit differs: %s", diff)
	}
}

func TestWhatATurnNeeds(t *testing.T) {
	t.Parallel()
	w := &world{}
	h := newHost(t, w, w)
	for name, mod := range map[string]func(*host.TurnRequest){
		"no key": func(r *host.TurnRequest) { r.Session.SessionKey = "" }, "no id": func(r *host.TurnRequest) { r.ID = "" },
		"no message": func(r *host.TurnRequest) { r.Message = nil }, "no JSON": func(r *host.TurnRequest) { r.Message = json.RawMessage(`{`) },
		"budget": func(r *host.TurnRequest) { r.TokenBudget = -1 },
	} {
		var invalid *contextengine.InvalidError
		if _, err := h.Turn(t.Context(), request(mod)); !errors.As(err, &invalid) || len(w.log()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := host.New(host.Config{Engine: w}); err == nil {
		t.Error("a host without a model")
	}
	demanding := &world{info: contextengine.Info{ID: "x", Name: "x", HostRequirements: map[contextengine.HostOperation]contextengine.HostRequirement{
		contextengine.OpAgentRun: {RequiredCapabilities: []contextengine.Capability{contextengine.CapCompact, contextengine.CapThreadProjection}},
	}}}
	var lacking *host.RequirementError
	if _, err := host.New(host.Config{Engine: demanding, Model: w}); !errors.As(err, &lacking) || len(lacking.Missing) != 1 {
		t.Errorf("a demanding engine: %v", err)
	}
}
