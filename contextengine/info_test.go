package contextengine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/engined/engined/contextengine"
)

func TestInfoTellsNoParamsFromAllParams(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		wire            string
		prompt, session bool
	}{
		{`{"id":"e","name":"E"}`, true, true},
		{`{"id":"e","name":"E","acceptedHostParams":[]}`, false, false},
		{`{"id":"e","name":"E","acceptedHostParams":["prompt"]}`, true, false},
	} {
		var i contextengine.Info
		if err := json.Unmarshal([]byte(tc.wire), &i); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(i)
		if err != nil || string(again) != tc.wire {
			t.Errorf("%s comes back as %s, %v", tc.wire, again, err)
		}
		if p, s := i.Accepts(contextengine.ParamPrompt), i.Accepts(contextengine.ParamSessionKey); p != tc.prompt || s != tc.session {
			t.Errorf("%s accepts prompt %v, sessionKey %v", tc.wire, p, s)
		}
	}
}

func TestMissingCapabilities(t *testing.T) {
	t.Parallel()
	i := contextengine.Info{HostRequirements: map[contextengine.HostOperation]contextengine.HostRequirement{
		contextengine.OpAgentRun: {RequiredCapabilities: []contextengine.Capability{contextengine.CapThreadProjection, contextengine.CapAssemble}},
	}}
	got := i.Missing(contextengine.OpAgentRun, []contextengine.Capability{contextengine.CapAssemble})
	if !slices.Equal(got, []contextengine.Capability{contextengine.CapThreadProjection}) {
		t.Errorf("missing %v", got)
	}
	if got := i.Missing(contextengine.OpManualCompact, nil); got != nil {
		t.Errorf("an operation without requirements lacks %v", got)
	}
}

func TestDurableNeedsBothPromises(t *testing.T) {
	t.Parallel()
	both := contextengine.TranscriptSemantics{
		CurrentTurnFence: contextengine.FenceBeforeCurrentTurn, TurnAdvancementIdempotency: contextengine.AtomicIdempotentTurns,
	}
	half := both
	half.CurrentTurnFence = "other"
	for want, s := range map[bool]*contextengine.TranscriptSemantics{true: &both, false: &half} {
		if got := (contextengine.Info{TranscriptSemantics: s}).Durable(); got != want {
			t.Errorf("%+v is durable: %v", s, got)
		}
	}
	if (contextengine.Info{}).Durable() {
		t.Error("an engine that promises nothing is durable")
	}
}
