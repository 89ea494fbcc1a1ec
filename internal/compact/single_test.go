package compact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

var singles = map[string]Single{
	"native":  {KeepTokens: 20000, ApartTurn: true, MaxTokens: 4000},
	"rolling": {KeepTurns: 3, MaxTokens: 4000},
}

func TestSinglePlansKeepTheRules(t *testing.T) {
	t.Parallel()
	for name, single := range singles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { checkSingle(t, single) })
		})
	}
}

func checkSingle(t *rapid.T, single Single) {
	var s session
	scale := rapid.SampledFrom([]int{20, 200, 2000}).Draw(t, "scale")
	budget := rapid.SampledFrom([]int{500, 2000, 8000, 32000, 128000}).Draw(t, "budget")
	for range rapid.IntRange(1, 6).Draw(t, "generations") {
		s.drawTurns(t, rapid.IntRange(1, 30).Draw(t, "turns"), scale)
		in := s.input(budget, rapid.Bool().Draw(t, "force"))
		p, stop := NewSinglePlan(in, single)
		if again, stop2 := NewSinglePlan(in, single); stop2 != stop || !cmp.Equal(p, again, cmp.AllowUnexported(Step{})) {
			t.Fatal("same input, another plan")
		}
		if stop != "" {
			continue
		}
		check(t, in, p)
		if !fits(in, p, budget) {
			t.Fatalf("%d tokens promised for a budget of %d: kept %d live %v old %+v", p.TokensAfterMax, budget, p.KeptTokens, p.Live, in.Live)
		}
		if most := map[bool]int{false: 1, true: 2}[single.ApartTurn]; len(p.Live) > most {
			// Only neighbours whose combination saves nothing stay apart.
			for _, n := range p.Live {
				if tokensOf(in, p, n) > 4*DefaultPolicy().MinSummaryTokens {
					t.Fatalf("%d summaries, one of %d tokens", len(p.Live), tokensOf(in, p, n))
				}
			}
		}
		s.apply(p, func(upper int) int { return max(upper*rapid.IntRange(50, 100).Draw(t, "fill")/100, 1) })
	}
}

// The account of the past stays one summary, however long the session.
func TestRollingStaysOneSummary(t *testing.T) {
	t.Parallel()
	const budget = 16000
	var s session
	compactions := 0
	for range 400 {
		s.turn(60, 2, 300, 200)
		in := s.input(budget, false)
		p, stop := NewSinglePlan(in, singles["rolling"])
		if stop != "" {
			continue
		}
		compactions++
		s.apply(p, func(upper int) int { return upper })
		if len(p.Live) != 1 {
			t.Fatalf("compaction %d leaves %d summaries", compactions, len(p.Live))
		}
		users := 0
		for _, e := range s.input(budget, false).Entries {
			if e.Role == message.User {
				users++
			}
		}
		if users != 3 {
			t.Fatalf("compaction %d keeps %d turns", compactions, users)
		}
	}
	if compactions < 10 {
		t.Errorf("%d compactions in 400 turns", compactions)
	}
}

// A turn larger than the tail is split, and what led to the rest of it has a
// summary of its own behind that of the history.
func TestNativeSplitsTheNewestTurn(t *testing.T) {
	t.Parallel()
	var s session
	for range 6 {
		s.turn(60, 2, 900, 200)
	}
	user := s.seq + 1
	s.turn(60, 30, 900, 200)
	in := s.input(16000, false)
	p, stop := NewSinglePlan(in, singles["native"])
	if stop != "" {
		t.Fatal(stop)
	}
	if len(p.Live) != 2 || p.FirstKept != user || p.TailFrom <= user {
		t.Fatalf("live %v, first kept %d of turn %d, tail from %d", p.Live, p.FirstKept, user, p.TailFrom)
	}
	history, turn := p.Steps[p.Live[0].Step-1], p.Steps[p.Live[1].Step-1]
	if history.Covers[0].From != 1 || history.Covers[0].To > user || turn.Covers[0].From < user {
		t.Errorf("history %v, turn %v", history.Covers, turn.Covers)
	}
}
