package compact

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/events"
)

// session applies plans as a commit would.
type session struct {
	conversation
	live      []SummaryRef
	sources   map[int64]bool // covered messages
	compacted int64
}

func (s *session) input(budget int, force bool) PlanInput {
	in := PlanInput{Live: s.live, Budget: budget, Force: force, CompactedAt: s.compacted}
	// What is covered never returns.
	s.entries = slices.DeleteFunc(s.entries, func(e Entry) bool { return s.sources[e.Seq] })
	in.Entries = slices.Clone(s.entries)
	return in
}

// apply commits a plan whose summaries came out at their bound, or smaller.
func (s *session) apply(p Plan, used func(upper int) int) {
	if s.sources == nil {
		s.sources = map[int64]bool{}
	}
	known := map[int64]SummaryRef{}
	for _, l := range s.live {
		known[l.Seq] = l
	}
	seqOf := map[int]int64{}
	for _, st := range p.Steps {
		s.seq++
		seqOf[st.ID] = s.seq
		known[s.seq] = SummaryRef{Seq: s.seq, Level: st.Level, Tokens: used(st.MaxTokens), SourceTokens: st.SourceTokens, Covers: st.Covers}
		for _, q := range st.SourceSeqs {
			s.sources[q] = true
		}
	}
	s.live = nil
	for _, n := range p.Live {
		seq := n.Seq
		if n.Step > 0 {
			seq = seqOf[n.Step]
		}
		s.live = append(s.live, known[seq])
	}
	s.seq++
	s.compacted = s.seq
}

// check holds a plan against every rule that does not depend on its numbers.
func check(t *rapid.T, in PlanInput, p Plan) {
	covered := map[int64]int{}
	for i, st := range p.Steps {
		if st.ID != i+1 {
			t.Fatalf("step %d has id %d", i+1, st.ID)
		}
		if (len(st.SourceSeqs) > 0) == (len(st.Children) > 0) {
			t.Fatalf("step %d must have messages or children", st.ID)
		}
		if st.MaxTokens >= st.SourceTokens {
			t.Fatalf("step %d may be as large as its source: %+v", st.ID, st)
		}
		for _, seq := range st.SourceSeqs {
			covered[seq]++
		}
		if n := size(st.Sources); st.Level == 1 && n != len(st.SourceSeqs) {
			t.Fatalf("step %d: ranges hold %d seqs of %d", st.ID, n, len(st.SourceSeqs))
		}
		for _, c := range st.Children {
			if c.Step >= st.ID {
				t.Fatalf("step %d is made of the later step %d", st.ID, c.Step)
			}
			if c.Step > 0 && (p.Steps[c.Step-1].Level >= st.Level || p.Steps[c.Step-1].stage >= st.stage) {
				t.Fatalf("step %d is not above its child %d", st.ID, c.Step)
			}
		}
	}
	entries := map[int64]bool{}
	for _, e := range in.Entries {
		entries[e.Seq] = true
	}
	for seq, n := range covered {
		if n != 1 || !entries[seq] {
			t.Fatalf("message %d is covered %d times (on the path: %v)", seq, n, entries[seq])
		}
	}
	kept := 0
	for _, u := range unitsOf(in.Entries, 1000, in.Budget) {
		n := 0
		for _, i := range u.Entries {
			n += covered[in.Entries[i].Seq]
		}
		if n != 0 && n != len(u.Entries) {
			t.Fatalf("unit of %d messages is split", len(u.Entries))
		}
		if n > 0 && u.keep {
			t.Fatalf("protected message %d is covered", in.Entries[u.Entries[0]].Seq)
		}
		if n == 0 {
			kept += u.Tokens
		}
	}
	checkLive(t, in, p)
	total := kept
	for _, n := range p.Live {
		total += tokensOf(in, p, n)
	}
	if total != p.TokensAfterMax {
		t.Fatalf("promises %d tokens, adds up to %d", p.TokensAfterMax, total)
	}
	if p.TokensAfterMax >= p.TokensBefore {
		t.Fatalf("grows from %d to %d", p.TokensBefore, p.TokensAfterMax)
	}
}

// checkLive: each summary is live or under exactly one live one, and the live
// set covers every covered message once.
func checkLive(t *rapid.T, in PlanInput, p Plan) {
	want, got := map[int64]int{}, map[int64]int{}
	each := func(rs []events.Range, m map[int64]int) {
		for _, r := range rs {
			for s := r.From; s <= r.To; s++ {
				m[s]++
			}
		}
	}
	for _, l := range in.Live {
		each(l.Covers, want)
	}
	for _, st := range p.Steps {
		each(st.Sources, want)
	}
	for _, n := range p.Live {
		each(coversOf(in, p, n), got)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("coverage of the live set (-want +got):\n%s", d)
	}
}

func coversOf(in PlanInput, p Plan, n Node) []events.Range {
	if n.Step > 0 {
		return p.Steps[n.Step-1].Covers
	}
	for _, l := range in.Live {
		if l.Seq == n.Seq {
			return l.Covers
		}
	}
	return nil
}

func tokensOf(in PlanInput, p Plan, n Node) int {
	if n.Step > 0 {
		return p.Steps[n.Step-1].MaxTokens
	}
	for _, l := range in.Live {
		if l.Seq == n.Seq {
			return l.Tokens
		}
	}
	return math.MaxInt32
}

func size(rs []events.Range) int {
	n := 0
	for _, r := range rs {
		n += int(r.To-r.From) + 1
	}
	return n
}

// fits reports whether the plan keeps the promise that its protected messages
// leave room for: they, two rests too small to summarize, and one summary.
func fits(in PlanInput, p Plan, limit int) bool {
	policy := in.Policy.WithDefaults()
	must := 0
	for _, u := range unitsOf(in.Entries, 1000, in.Budget) {
		if u.keep {
			must += u.Tokens
		}
	}
	room := must + 2*policy.MinSummaryTokens*5/4 + policy.MinSummaryTokens
	if in.Force && room <= limit {
		return p.TokensAfterMax <= limit
	}
	// Old summaries are not squeezed for large new messages, unless a forced plan
	// can make the window fit by that.
	if !in.Force {
		limit = limit * 11 / 10
	}
	room += limit / 10
	return p.TokensAfterMax <= max(limit, room)
}

func TestPlanKeepsItsRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s session
		scale := rapid.SampledFrom([]int{20, 200, 2000}).Draw(t, "scale")
		budget := rapid.SampledFrom([]int{500, 2000, 8000, 32000, 128000}).Draw(t, "budget")
		for range rapid.IntRange(1, 6).Draw(t, "generations") {
			s.drawTurns(t, rapid.IntRange(1, 30).Draw(t, "turns"), scale)
			force := rapid.Bool().Draw(t, "force")
			in := s.input(budget, force)
			p, stop := NewPlan(in)
			if again, stop2 := NewPlan(in); stop2 != stop || !cmp.Equal(p, again, cmp.AllowUnexported(Step{})) {
				t.Fatal("same input, another plan")
			}
			if stop != "" {
				continue
			}
			check(t, in, p)
			if !fits(in, p, budget) {
				t.Fatalf("%d tokens promised for a budget of %d: kept %d live %v old %+v", p.TokensAfterMax, budget, p.KeptTokens, p.Live, in.Live)
			}
			s.apply(p, func(upper int) int { return max(upper*rapid.IntRange(50, 100).Draw(t, "fill")/100, 1) })
			if _, stop := NewPlan(s.input(budget, force)); stop == "" {
				t.Fatalf("a second compaction without new messages has something to do (force %v)", force)
			}
		}
	})
}

// TestDepthIsLogarithmic compacts far more often than any session will.
func TestDepthIsLogarithmic(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{2000, 8000, 32000, 200000} {
		var s session
		for range 1500 {
			s.turn(60, 4, 700, 200)
			in := s.input(budget, false)
			p, stop := NewPlan(in)
			if stop != "" {
				continue
			}
			if p.TokensAfterMax > budget/5*3+1500 && budget > 4000 {
				t.Fatalf("budget %d: aims for %d", budget, p.TokensAfterMax)
			}
			s.apply(p, func(upper int) int { return upper })
		}
		deepest, sources := 0, len(s.sources)
		for _, l := range s.live {
			deepest = max(deepest, l.Level)
		}
		// At the least two of a level make one of the next.
		if bound := int(math.Log2(float64(sources))) + 1; deepest > bound {
			t.Errorf("budget %d: depth %d over %d messages, want at most %d", budget, deepest, sources, bound)
		}
		t.Logf("budget %d: %d live summaries, depth %d over %d messages", budget, len(s.live), deepest, sources)
	}
}

func TestHysteresis(t *testing.T) {
	t.Parallel()
	const budget = 32000
	var s session
	turns, compactions := 1000, 0
	for range turns {
		s.turn(60, 2, 200, 150)
		in := s.input(budget, false)
		p, stop := NewPlan(in)
		if stop != "" {
			continue
		}
		compactions++
		s.apply(p, func(upper int) int { return upper })
		if in.Policy.Owes(p.TokensAfterMax, budget) {
			t.Fatalf("still owes after %d compactions: %d", compactions, p.TokensAfterMax)
		}
	}
	// A turn brings about 690 tokens and a compaction frees at least a quarter of
	// the budget, so it lasts for eleven turns.
	if compactions == 0 || compactions > turns/8 {
		t.Errorf("%d compactions in %d turns", compactions, turns)
	}
}

// TestAPlanUsesItsGoal: where there is more to show than the goal, a compaction
// leaves little of it unused, and never goes beyond.
func TestAPlanUsesItsGoal(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{8000, 32_000, 128_000, 400_000} {
		var s session
		compactions, least := 0, 1.0
		for range 1200 {
			s.turn(60, 3, 300, 150)
			in := s.input(budget, false)
			p, stop := NewPlan(in)
			if stop != "" {
				continue
			}
			compactions++
			goal := in.Policy.WithDefaults().TargetShare * float64(budget)
			if used := float64(p.TokensAfterMax) / goal; used > 1 {
				t.Fatalf("budget %d: goes %g times beyond its goal", budget, used)
			} else {
				least = min(least, used)
			}
			s.apply(p, func(upper int) int { return upper })
		}
		if compactions < 2 || least < 0.75 {
			t.Errorf("budget %d: %d compactions, one of them to %.2f of its goal", budget, compactions, least)
		}
		t.Logf("budget %d: %d compactions, the least used %.2f of its goal", budget, compactions, least)
	}
}

// TestAnEarlyPlanMakesWhatIsWantedLater: the lasting steps of a preparation at the
// soft threshold are steps of the compaction at the hard one.
func TestAnEarlyPlanMakesWhatIsWantedLater(t *testing.T) {
	t.Parallel()
	const budget = 200_000
	var s session
	var early Plan
	for range 1000 {
		s.turn(60, 3, 300, 150)
		in := s.input(budget, false)
		if p, stop := NewPlan(in.Early()); stop == "" && len(early.Steps) == 0 {
			early = p
		}
		p, stop := NewPlan(in)
		if stop != "" {
			continue
		}
		wanted := map[string]bool{}
		for _, st := range p.Steps {
			wanted[fmt.Sprint(st.SourceSeqs, st.MaxTokens)] = true
		}
		made := lasting(early.Steps)
		if len(made) < 2 {
			t.Fatalf("%d drafts are prepared, the compaction has %d steps", len(made), len(p.Steps))
		}
		for _, st := range made {
			if !wanted[fmt.Sprint(st.SourceSeqs, st.MaxTokens)] {
				t.Errorf("the draft of %v within %d tokens is wanted by nobody", st.Sources, st.MaxTokens)
			}
		}
		return
	}
	t.Fatal("no compaction")
}

func TestPolicyAt(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	for _, tc := range []struct{ threshold, soft, wantSoft, target, tail float64 }{
		{0.85, 0, 0.68, 0.6, 0.3}, {0.95, 0, 0.76, 0.6, 0.3}, {0.95, 0.5, 0.5, 0.6, 0.3}, {0.425, 0, 0.34, 0.3, 0.15},
	} {
		got := p.At(tc.threshold, tc.soft)
		want := p
		want.Threshold, want.SoftThreshold, want.TargetShare, want.TailShare = tc.threshold, tc.wantSoft, tc.target, tc.tail
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); d != "" {
			t.Errorf("at %g: %s", tc.threshold, d)
		}
	}
}

// TestALowerThresholdAloneIsAPolicy: whoever sets nothing else gets one that holds,
// with a gap in proportion.
func TestALowerThresholdAloneIsAPolicy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.Float64Range(0.1, 1).Draw(t, "threshold")
		p := Policy{Threshold: threshold, SoftThreshold: 0.8 * threshold, TargetShare: 0.6, TailShare: 0.3}.Fitted()
		if err := p.Validate(); err != nil {
			t.Fatalf("threshold %g: %v", threshold, err)
		}
		want := min(0.6, 0.6/0.85*threshold)
		if math.Abs(p.TargetShare-want) > 1e-9 || p.TailShare > p.TargetShare/2+1e-9 {
			t.Fatalf("threshold %g: target %g, tail %g", threshold, p.TargetShare, p.TailShare)
		}
	})
}
