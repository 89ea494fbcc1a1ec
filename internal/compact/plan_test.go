package compact

import (
	"slices"
	"testing"

	"github.com/engined/engined/internal/message"
)

// plan is a plan that must exist.
func planOf(t *testing.T, in PlanInput) Plan {
	t.Helper()
	p, stop := NewPlan(in)
	if stop != "" {
		t.Fatalf("no plan: %s", stop)
	}
	return p
}

func covers(p Plan, seq int64) bool {
	for _, s := range p.Steps {
		if slices.Contains(s.SourceSeqs, seq) {
			return true
		}
	}
	return false
}

func TestStops(t *testing.T) {
	t.Parallel()
	long := func() *session {
		var s session
		for range 40 {
			s.turn(50, 2, 300, 100)
		}
		return &s
	}
	for name, c := range map[string]struct {
		in   func() PlanInput
		want Stop
	}{
		"empty":                 {func() PlanInput { return PlanInput{Budget: 8000} }, StopUnderTarget},
		"empty, forced":         {func() PlanInput { return PlanInput{Budget: 8000, Force: true} }, StopNothing},
		"no budget, not forced": {func() PlanInput { return long().input(0, false) }, StopNothing},
		"no budget, forced":     {func() PlanInput { return long().input(0, true) }, ""},
		"small":                 {func() PlanInput { return long().input(200000, false) }, StopUnderTarget},
		"small, forced":         {func() PlanInput { return long().input(200000, true) }, ""},
		"over the target alone": {func() PlanInput {
			in := long().input(200000, false)
			in.Target = 20000
			return in
		}, ""},
		"heartbeats only": {func() PlanInput {
			var s session
			for range 200 {
				s.add(message.User, 30, message.Heartbeat)
				s.add(message.Assistant, 5, message.Heartbeat)
			}
			return s.input(8000, true)
		}, StopNothing},
		"one user message, forced": {func() PlanInput {
			var s session
			s.add(message.User, 5000, 0)
			return s.input(2000, true)
		}, StopNothing},
		"all protected, over budget": {func() PlanInput {
			var s session
			s.add(message.User, 3000, 0)
			for _, id := range s.calls(3, 40, false) {
				s.result(id, 3000)
			}
			return s.input(4000, false)
		}, StopNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := c.in()
			if p, stop := NewPlan(in); stop != c.want {
				t.Errorf("got %q, want %q (plan %+v)", stop, c.want, p)
			}
		})
	}
}

// A tool whose process died must not hold all later compaction back.
func TestDeadCallBlocksNothing(t *testing.T) {
	t.Parallel()
	var s session
	s.turn(50, 1, 200, 100)
	dead := s.seq + 2
	s.add(message.User, 50, 0)
	s.calls(1, 40, false)
	for range 60 {
		s.turn(50, 2, 300, 100)
	}
	p := planOf(t, s.input(16000, false))
	if !covers(p, dead) {
		t.Errorf("the dead call %d is not covered: %+v", dead, p)
	}
	if p.TokensAfterMax > 9600 {
		t.Errorf("aims for %d tokens of 16000", p.TokensAfterMax)
	}
}

// A turn larger than the tail is split: its older groups are covered, its user
// message and its newest groups stay.
func TestSplitTurn(t *testing.T) {
	t.Parallel()
	var s session
	for range 5 {
		s.turn(50, 2, 300, 100)
	}
	user := s.seq + 1
	s.add(message.User, 80, 0)
	var last []string
	for range 47 {
		last = s.calls(1, 40, false)
		s.result(last[0], 400)
	}
	open := s.seq + 1
	s.calls(2, 40, false)
	p := planOf(t, s.input(8000, false))
	switch {
	case covers(p, user):
		t.Error("the newest user message is covered")
	case !covers(p, user+1):
		t.Error("the turn's first group is not covered")
	case covers(p, open) || covers(p, open-1) || covers(p, open-2):
		t.Error("an open call or an unread result is covered")
	case p.FirstKept != user || p.TailFrom <= user:
		t.Errorf("keeps from %d, tail from %d", p.FirstKept, p.TailFrom)
	case p.TokensAfterMax > 8000:
		t.Errorf("%d tokens", p.TokensAfterMax)
	}
	for _, st := range p.Steps {
		if st.Level == 1 && st.SourceSeqs[0] < user && st.SourceSeqs[len(st.SourceSeqs)-1] > user {
			t.Errorf("step %d reaches across the user message", st.ID)
		}
	}
}

func TestUnreadResultOfAnOldCallStays(t *testing.T) {
	t.Parallel()
	var s session
	s.add(message.User, 50, 0)
	call := s.seq + 1
	ids := s.calls(1, 40, false)
	for range 40 {
		s.turn(50, 2, 300, 100)
	}
	s.result(ids[0], 100)
	p := planOf(t, s.input(8000, true))
	if covers(p, call) || covers(p, s.seq) {
		t.Error("a result that the model has not read is covered")
	}
}

func TestOversizedUnitIsAChunkOfItsOwn(t *testing.T) {
	t.Parallel()
	var s session
	for range 10 {
		s.turn(50, 1, 300, 100)
	}
	s.turn(50, 4, 40000, 100) // each result weighs at most what is shown of it
	big := s.seq + 1
	s.add(message.User, 50, 0)
	for range 3 {
		ids := s.calls(8, 40, false)
		for _, id := range ids {
			s.result(id, 3000)
		}
	}
	for range 30 {
		s.turn(50, 1, 300, 100)
	}
	p := planOf(t, s.input(32000, false))
	for _, st := range p.Steps {
		if slices.Contains(st.SourceSeqs, big+1) && len(st.SourceSeqs) > 9 {
			t.Errorf("the group shares its chunk: %v", st.SourceSeqs)
		}
	}
}

// Chunks keep their edges while the session grows, so a retry finds its drafts.
func TestChunkEdgesStay(t *testing.T) {
	t.Parallel()
	var s session
	for range 100 {
		s.turn(50, 2, 400, 100)
	}
	before := planOf(t, s.input(32000, false))
	for range 10 {
		s.turn(50, 2, 400, 100)
	}
	after := planOf(t, s.input(32000, false))
	for i, st := range before.Steps[:10] {
		if !slices.Equal(st.SourceSeqs, after.Steps[i].SourceSeqs) || st.MaxTokens != after.Steps[i].MaxTokens {
			t.Errorf("step %d moved", st.ID)
		}
	}
}

func TestForcedTailIsHalfAtMost(t *testing.T) {
	t.Parallel()
	var s session
	for range 12 {
		s.turn(20, 0, 0, 40)
	}
	p := planOf(t, s.input(100000, true))
	tail := p.KeptTokens
	if tail > p.TokensBefore/2 || p.TokensAfterMax >= p.TokensBefore {
		t.Errorf("keeps %d of %d tokens", tail, p.TokensBefore)
	}
	s.apply(p, func(upper int) int { return upper })
	if _, stop := NewPlan(s.input(100000, true)); stop != StopCompacted {
		t.Errorf("a second forced call: %q", stop)
	}
	s.turn(20, 0, 0, 400)
	s.turn(20, 0, 0, 400)
	planOf(t, s.input(100000, true))
}

// With a smaller budget what was compacted once is made smaller still.
func TestSmallerBudgetCondenses(t *testing.T) {
	t.Parallel()
	var s session
	for range 400 {
		s.turn(50, 4, 600, 200)
		if p, stop := NewPlan(s.input(128000, false)); stop == "" {
			s.apply(p, func(upper int) int { return upper })
		}
	}
	for _, budget := range []int{32000, 8000, 2500} {
		in := s.input(budget, true)
		p := planOf(t, in)
		if p.TokensAfterMax > budget {
			t.Errorf("budget %d: %d tokens", budget, p.TokensAfterMax)
		}
		s.apply(p, func(upper int) int { return upper })
	}
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	var s session
	for range 60 {
		s.turn(50, 2, 300, 100)
	}
	in := s.input(16000, false)
	in.FactorMilli = 1700
	p := planOf(t, in)
	if p.TokensAfterMax > 9600 {
		t.Errorf("%d calibrated tokens", p.TokensAfterMax)
	}
	for _, st := range p.Steps {
		if st.Level == 1 && st.MaxTokens > st.SourceTokens*3/10+1 {
			t.Errorf("step %d: %d of %d tokens", st.ID, st.MaxTokens, st.SourceTokens)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	if err := (Policy{}).WithDefaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, p := range map[string]Policy{
		"threshold":   {Threshold: 1.5},
		"tail":        {TailShare: 0.5, TargetShare: 0.5},
		"soft":        {SoftThreshold: 0.9},
		"fan-in":      {FanIn: 1},
		"least > max": {MinSummaryTokens: 500, MaxSummaryTokens: 100},
	} {
		if err := p.WithDefaults().Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
