package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/engined/engined/contextengine"
)

// TestADebtIsCountedForTheModelOfItsTurn: windows are built as the turn's model
// counts, also where the session's epoch began with another one. A window that
// leaves messages out owes a compaction.
func TestADebtIsCountedForTheModelOfItsTurn(t *testing.T) {
	t.Parallel()
	const budget = 20_000
	turns := func(b *bundle, model string, from, n int, prompt func(counted int) int) (owed bool, leftOut int) {
		t.Helper()
		raws, prompts := costly(t, n, func(_ int, text string) string { return assistant(text) })
		for i := range n {
			given := budget
			p := contextengine.CommitTurnParams{
				Session: on("k"), AdvancementKey: fmt.Sprint(model, from+i), TokenBudget: &given,
				Messages:       []json.RawMessage{json.RawMessage(raws[2*i]), json.RawMessage(raws[2*i+1])},
				RuntimeContext: &contextengine.RuntimeContext{ModelID: model},
			}
			if n := prompt(prompts[i]); n > 0 {
				p.Usage = &contextengine.Usage{Input: n}
			}
			res, err := b.CommitTurn(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			w, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k"), TokenBudget: &given, Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if owed, leftOut = res.Compaction != contextengine.CompactionNone, w.LeftOut; owed || leftOut > 0 {
				return owed, leftOut
			}
		}
		return owed, leftOut
	}
	counted := func(n int) int { return n }
	silent := func(int) int { return 0 }
	for name, tc := range map[string]struct {
		first, then string
		learned     func(int) int
		told        func(int) int
	}{
		"a family that counts more":                {"gpt-5", "claude-x", silent, silent},
		"a family that counts more, large prompts": {"gpt-5", "claude-x", silent, func(int) int { return budget }},
		"a model that was learned before":          {"m-1", "m-1", counted, silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			turns(b, tc.first, 0, 20, tc.learned)
			// The epoch begins with a model that counts as the estimator does.
			turns(b, "gpt-5", 100, 10, func(n int) int { return 5000 + (n-5000)*2/3 })
			if res := b.compact("k", 8000); !res.Compacted {
				t.Fatalf("%+v", res)
			}
			owed, leftOut := turns(b, tc.then, 200, 60, tc.told)
			if !owed || leftOut > 0 {
				t.Errorf("owed %v with %d messages left out", owed, leftOut)
			}
		})
	}
}
