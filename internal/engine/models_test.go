package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
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
