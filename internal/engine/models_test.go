package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

func TestModelGivesTheBudgetWhereTheHostTellsNone(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) {
		c.DefaultBudget = 100_000
		c.Models = []engine.ModelWindow{{Pattern: "small-*", Tokens: 2500, Reserve: 500}, {Pattern: "*", Tokens: 50_000}}
	})
	b.ingest("k", talk(0, 20)...)
	count := func(key, model string, budget *int) int {
		t.Helper()
		res, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on(key), TokenBudget: budget, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		return res.EstimatedTokens
	}
	whole := count("k", "", nil)
	for model, most := range map[string]int{"small-1": 2000, "Provider/SMALL-2": 2000, "big": whole} {
		if n := count("k", model, nil); n > most || n < most/2 {
			t.Errorf("for %s the window has %d tokens, want at most %d", model, n, most)
		}
	}
	larger := 4000
	if n := count("k", "small-1", &larger); n <= 2000 {
		t.Errorf("the caller's budget of %d does not count: %d tokens", larger, n)
	}

	// A turn that names the model but no budget gives the session the model's.
	var turn []json.RawMessage
	for _, m := range talk(0, 5) {
		turn = append(turn, json.RawMessage(m))
	}
	res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
		Session: on("owes"), Messages: turn, RuntimeContext: &contextengine.RuntimeContext{ModelID: "small-1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Compaction != contextengine.CompactionScheduled {
		t.Errorf("compaction %q: the turn is beyond the model's budget", res.Compaction)
	}
	if n := count("owes", "", nil); n > 2000 {
		t.Errorf("%d tokens without a model, beyond the session's budget", n)
	}
}

func TestModelsHaveThresholdsOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := engine.Models{
		{Pattern: "early-*", Threshold: 0.4},
		{Pattern: "late-*", Tokens: 5000, Threshold: 0.95, Soft: 0.6},
		{Pattern: "early-1", Tokens: 9000, Threshold: 0.9},
	}
	general := compact.DefaultPolicy()
	for model, want := range map[string][2]float64{
		"": {0.85, 0.68}, "other": {0.85, 0.68}, "early-1": {0.4, 0.32}, "x/EARLY-2": {0.4, 0.32}, "late-1": {0.95, 0.6},
	} {
		p := m.Policy(general, model)
		if got := [2]float64{p.Threshold, p.SoftThreshold}; math.Abs(got[0]-want[0])+math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("%q: thresholds %v, want %v", model, got, want)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q: %v", model, err)
		}
	}
	if p := m.Policy(general, "late-1"); p.TargetShare != general.TargetShare {
		t.Errorf("a later threshold moved the target to %g", p.TargetShare)
	}
	if n := m.Budget("early-1"); n != 9000 {
		t.Errorf("budget %d: the first entry that tells one counts", n)
	}
	if soft := m.LeastSoft(general); math.Abs(soft-0.32) > 1e-9 {
		t.Errorf("the least soft threshold is %g", soft)
	}
}

// TestTheLastNamedModelDecidesWhatIsOwedAndPrepared: a turn that names no model
// goes by the one before.
func TestTheLastNamedModelDecidesWhatIsOwedAndPrepared(t *testing.T) {
	t.Parallel()
	models := engine.Models{{Pattern: "early", Threshold: 0.4, Soft: 0.2}, {Pattern: "late", Threshold: 1, Soft: 0.99}}
	url := testdb.New(t)
	st, err := store.Open(t.Context(), store.Config{URL: url, DebtMilliOf: func(model string) int64 {
		return int64(models.Policy(compact.Policy{}, model).Threshold * 1000)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := node(t, url, func(c *engine.Config) {
		c.Log, c.Models, c.Policy = st, models, compact.Policy{ChunkTokens: 400}
	})
	for _, tc := range []struct {
		model    string
		fill     float64
		owes     bool
		prepares bool
	}{
		{"early", 0.1, false, false},
		{"early", 0.3, false, true},
		{"early", 0.5, true, true},
		{"late", 0.5, false, false},
		{"late", 0.95, false, false},
		{"late", 1.1, true, true},
		{"", 0.5, false, false},
		{"", 0.8, false, true},
		{"", 0.9, true, true},
	} {
		key := fmt.Sprint(tc.model, tc.fill)
		b.ingest(key, talk(0, 40)...)
		end := func(model string, budget int) contextengine.CompactionStatus {
			t.Helper()
			res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
				Session: on(key), TokenBudget: &budget, RuntimeContext: &contextengine.RuntimeContext{ModelID: model},
			})
			if err != nil {
				t.Fatal(err)
			}
			return res.Compaction
		}
		end(tc.model, 1_000_000)
		s, err := st.Session(t.Context(), "t", key)
		if err != nil {
			t.Fatal(err)
		}
		// The second turn names no model.
		got := end("", int(float64(s.LiveTokens())/tc.fill))
		if owes := got == contextengine.CompactionScheduled; owes != tc.owes {
			t.Errorf("%q at %g of the budget: %q", tc.model, tc.fill, got)
		}
		made, err := b.Prepare(t.Context(), s)
		if err != nil || made > 0 != tc.prepares {
			t.Errorf("%q at %g of the budget: %d drafts, %v", tc.model, tc.fill, made, err)
		}
	}
}
