package engine_test

import (
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/engine"
)

func TestLeftOutCountsWhatWasNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const turns, budget = 200, 3000
	b.ingest("k", talk(0, turns)...)
	b.ingest("k", `{"role":"assistant","content":[],"stopReason":"aborted"}`) // never shown
	messages := 4*turns + 1
	// A node that read the end of the log, one that goes on from there, one that
	// starts anew, and one that explains.
	for _, n := range []*bundle{b, b, node(t, b.url())} {
		if w := n.window("k", budget); w.LeftOut+len(w.Messages) != messages {
			t.Errorf("%d left out and %d shown of %d", w.LeftOut, len(w.Messages), messages)
		}
	}
	b.ingest("k", talk(turns, 1)...)
	messages += 4
	if w := b.window("k", budget); w.LeftOut+len(w.Messages) != messages {
		t.Errorf("grown: %d left out and %d shown of %d", w.LeftOut, len(w.Messages), messages)
	}
	told := map[int64]int{}
	res, err := b.Assemble(t.Context(), contextengine.AssembleParams{Session: on("k"), TokenBudget: new(budget), Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range res.Explanation {
		told[e.Seq]++
	}
	if len(told) != messages || len(res.Explanation) != messages {
		t.Errorf("%d lines about %d messages of %d", len(res.Explanation), len(told), messages)
	}
}

func TestLeftOutCountsWhatASummaryWithoutRoomCovers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Policy = compact.Policy{MaxSummaryTokens: 600, FanIn: 32} })
	b.ingest("k", talk(0, 100)...)
	if res := b.compact("k", 30_000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	all, covered := 400, 0
	for _, budget := range []int{30_000, 4000, 1500} {
		w := b.windowExplained("k", budget)
		shown, summaries := 0, 0
		for _, e := range w.Explanation {
			switch {
			case e.Kind == "message" && e.Shown:
				shown++
			case e.Kind == "summary" && e.Shown:
				summaries++
			}
		}
		if w.LeftOut == 0 && budget == 30_000 {
			covered = all - shown
		}
		if summaries == 0 && w.LeftOut != all-shown {
			t.Errorf("budget %d: %d left out, %d shown, no summary", budget, w.LeftOut, shown)
		}
		if w.LeftOut > all-shown || budget == 30_000 && covered == 0 {
			t.Errorf("budget %d: %d left out, %d shown", budget, w.LeftOut, shown)
		}
	}
}

func (b *bundle) windowExplained(key string, budget int) contextengine.AssembleResult {
	b.t.Helper()
	res, err := b.Assemble(b.t.Context(), contextengine.AssembleParams{Session: on(key), TokenBudget: &budget, Explain: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}
