package engine_test

import (
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/window"
)

func TestPrunedResultsAreExplained(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) {
		c.Prune = window.Pruning{Mode: window.PruneTrim, StepTokens: 100, TrimOver: 200, TrimTo: 100}
	})
	b.ingest("s", told(8)...)
	budget := 8000
	res, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("s"), TokenBudget: &budget, Explain: true})
	if err != nil || len(res.Messages) != 32 {
		t.Fatalf("%d messages, %v", len(res.Messages), err)
	}
	pruned := 0
	for i, x := range res.Explanation {
		marked := strings.Contains(string(res.Messages[i]), "full text: event")
		if says := x.Reason == "old tool result, pruned to its beginning and end"; says != marked {
			t.Errorf("%+v: %.200s", x, res.Messages[i])
		} else if says {
			pruned++
		}
	}
	if pruned < 4 || !strings.Contains(res.ContextProjection.Epoch, ".p") {
		t.Errorf("%d pruned in epoch %s", pruned, res.ContextProjection.Epoch)
	}
	// A window says what was shown, however it is asked for: cached, cold, in pages.
	other := engine.NewLossless(engine.Config{Log: b.store, Prune: window.Pruning{Mode: window.PruneTrim, StepTokens: 100, TrimOver: 200, TrimTo: 100}})
	t.Cleanup(func() { _ = other.Dispose(t.Context()) })
	if got, err := other.Assemble(t.Context(), contextengine.AssembleParams{Session: on("s"), TokenBudget: &budget}); err != nil || got.ContextProjection.Fingerprint != res.ContextProjection.Fingerprint {
		t.Errorf("another node: %+v, %+v", got.ContextProjection, res.ContextProjection)
	}
}
