package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// estimate is what a message counts before any calibration.
func estimate(t *testing.T, raw string) int {
	t.Helper()
	m, err := message.Read([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return tokens.Message(m)
}

// costly is a conversation whose prompts, beside the host's own 5,000 tokens,
// count half as much again as estimated. tell makes the reply that says so.
func costly(t *testing.T, turns int, tell func(prompt int, text string) string) (raws []string, prompts []int) {
	t.Helper()
	before := 0
	for i := range turns {
		q := user(fmt.Sprintf("Question %d. %s", i, strings.Repeat("There is a lot to say about it. ", 30)))
		before += estimate(t, q)
		prompt := 5000 + before*3/2
		a := tell(prompt, fmt.Sprintf("Answer %d. %s", i, strings.Repeat("The answer is long as well. ", 30)))
		before += estimate(t, a)
		raws, prompts = append(raws, q, a), append(prompts, prompt)
	}
	return raws, prompts
}

func TestUsageCalibratesAtTheNextEpoch(t *testing.T) {
	t.Parallel()
	reply := func(prompt int, text string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"model":"m-1","usage":{"input":1000,"cacheRead":%d,"cacheWrite":0,"output":9},"stopReason":"stop"}`, quote(text), prompt-1000)
	}
	silent := func(_ int, text string) string { return assistant(text) }
	for name, tc := range map[string]struct {
		reply func(int, string) string
		turn  func(prompt int) *contextengine.Usage
	}{
		"in the reply":       {reply, func(int) *contextengine.Usage { return nil }},
		"at the turn's end":  {silent, func(n int) *contextengine.Usage { return &contextengine.Usage{Input: n} }},
		"in both, once each": {reply, func(n int) *contextengine.Usage { return &contextengine.Usage{Input: n * 7} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			raws, prompts := costly(t, 12, tc.reply)
			var all []json.RawMessage
			for i, prompt := range prompts {
				all = append(all, json.RawMessage(raws[2*i]), json.RawMessage(raws[2*i+1]))
				if _, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
					Session: on("k"), Messages: all, PrePromptMessageCount: 2 * i, Usage: tc.turn(prompt),
					RuntimeContext: &contextengine.RuntimeContext{ModelID: "m-1"},
				}); err != nil {
					t.Fatal(err)
				}
			}
			const budget = 100_000
			before := b.window("k", budget)
			if res := b.compact("k", budget); !res.Compacted {
				t.Fatalf("not compacted: %+v", res)
			}
			after := b.window("k", budget)
			raw := 0
			for _, m := range after.Messages {
				raw += estimate(t, string(m))
			}
			if got := after.EstimatedTokens * 1000 / raw; got < 1490 || got > 1530 {
				t.Errorf("the window counts %d for %d estimated tokens, a factor of %d ‰; prompts grew by 1500 ‰", after.EstimatedTokens, raw, got)
			}
			then := b.windowAt("k", budget, &before.Head)
			if then.EstimatedTokens != before.EstimatedTokens || *then.ContextProjection != *before.ContextProjection {
				t.Errorf("as of %d the window counts %d tokens; it counted %d", before.Head, then.EstimatedTokens, before.EstimatedTokens)
			}
		})
	}
}

func TestModelDecidesTheFactor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 10)...)
	count := func(model string) int {
		t.Helper()
		budget := 100_000
		res, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k"), TokenBudget: &budget, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		return res.EstimatedTokens
	}
	plain, claude := count("gpt-5"), count("claude-sonnet-4-5")
	if got := claude * 1000 / plain; got < 1300 || got > 1330 {
		t.Errorf("a window for a Claude model counts %d tokens, %d ‰ of the %d of another", claude, got, plain)
	}
	if got := count(""); got != plain {
		t.Errorf("without a model it counts %d, want %d", got, plain)
	}
}

// TestAFirstCompactionIsOwedByWhatPromptsTeach: nothing was learned yet in a
// session's first epoch, but its prompts tell that the model counts half as much
// again; the debt does not wait until the estimate is there.
func TestAFirstCompactionIsOwedByWhatPromptsTeach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raws, prompts := costly(t, 60, func(_ int, text string) string { return assistant(text) })
	const budget = 20_000
	threshold := 0.85 * budget
	var all []json.RawMessage
	estimated := 0
	for i, prompt := range prompts {
		for _, raw := range raws[2*i : 2*i+2] {
			all = append(all, json.RawMessage(raw))
			estimated += estimate(t, raw)
		}
		given := budget
		res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
			Session: on("k"), Messages: all, PrePromptMessageCount: 2 * i, Usage: &contextengine.Usage{Input: prompt},
			TokenBudget: &given, RuntimeContext: &contextengine.RuntimeContext{ModelID: "m-1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		counted := float64(estimated) * 1.5
		if res.Compaction == contextengine.CompactionNone {
			if counted > 1.1*threshold {
				t.Fatalf("turn %d: %.0f tokens of a budget of %d, estimated as %d, and no compaction is owed", i, counted, budget, estimated)
			}
			continue
		}
		if counted < 0.9*threshold {
			t.Errorf("turn %d: a compaction is owed for %.0f tokens of a budget of %d", i, counted, budget)
		}
		return
	}
	t.Fatal("no compaction was ever owed")
}

// TestAPromptThatCannotBeTeachesNothingForGood: after it, prompts are looked at as
// before; and what one model teaches is not another's.
func TestAPromptThatCannotBeTeachesNothingForGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raws, prompts := costly(t, 60, func(_ int, text string) string { return assistant(text) })
	const budget = 20_000
	estimated := 0
	for i, prompt := range prompts {
		var turn []json.RawMessage
		for _, raw := range raws[2*i : 2*i+2] {
			turn = append(turn, json.RawMessage(raw))
			estimated += estimate(t, raw)
		}
		given, model := budget, "m-1"
		switch {
		case i == 3:
			prompt = 2_000_000_000
		case i > 4 && i%5 == 0:
			prompt, model = 0, "m-2"
		}
		res, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
			Session: on("k"), Messages: turn, Usage: &contextengine.Usage{Input: prompt},
			TokenBudget: &given, RuntimeContext: &contextengine.RuntimeContext{ModelID: model},
		})
		if err != nil {
			t.Fatal(err)
		}
		counted := float64(estimated)
		if model == "m-1" {
			counted *= 1.5
		}
		switch owed := res.Compaction != contextengine.CompactionNone; {
		case owed && counted < 0.85*0.9*budget:
			t.Fatalf("turn %d of %s: owed for %.0f tokens of a budget of %d", i, model, counted, budget)
		case owed:
			return
		case counted > 0.85*1.1*budget:
			t.Fatalf("turn %d of %s: %.0f tokens of a budget of %d, and nothing is owed", i, model, counted, budget)
		}
	}
	t.Fatal("no compaction was ever owed")
}

// TestAResultThatWindowsCutDoesNotLowerTheFactor: of it the prompt holds less than
// the log, which says nothing of how the model counts.
func TestAResultThatWindowsCutDoesNotLowerTheFactor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const budget = 40_000
	model := &contextengine.RuntimeContext{ModelID: "claude-x"}
	given := budget
	for i := range 14 {
		id := fmt.Sprint("c", i)
		b.ingest("k", user(fmt.Sprintf("Question %d. %s", i, strings.Repeat("There is a lot to say about it. ", 40))))
		b.ingest("k", call(id), result(id, strings.Repeat(fmt.Sprintf("row %d of a long listing\n", i), 2000)))
		prompt := 5000
		for _, m := range b.window("k", budget).Messages {
			prompt += estimate(t, string(m)) * 13 / 10
		}
		reply := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Answer %d."}],"model":"claude-x","usage":{"input":%d,"output":9},"stopReason":"stop"}`, i, prompt)
		if _, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{
			Session: on("k"), Messages: []json.RawMessage{json.RawMessage(reply)}, TokenBudget: &given, RuntimeContext: model,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if res := b.compact("k", budget); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	w, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k"), TokenBudget: &given, Model: "claude-x"})
	if err != nil {
		t.Fatal(err)
	}
	raw := 0
	for _, m := range w.Messages {
		raw += estimate(t, string(m))
	}
	if got := w.EstimatedTokens * 1000 / raw; got < 1280 {
		t.Errorf("the window counts %d for %d estimated tokens, a factor of %d ‰; prompts grew by 1300 ‰", w.EstimatedTokens, raw, got)
	}
}
