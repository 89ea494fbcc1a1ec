package window

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

// TestEveryBudgetShowsWhatSmallerOnesDo walks the budget up token by token:
// results that are cut to a share of it grow with each step.
func TestEveryBudgetShowsWhatSmallerOnesDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 7))
		cutUp, plain := &testLog{}, &testLog{}
		for range 40 {
			cutUp.user(1 + random.IntN(60))
			cutUp.call(1+random.IntN(60), "c")
			cutUp.result(5000, "c")
			plain.user(1 + random.IntN(40))
			plain.say(1 + random.IntN(40))
		}
		for _, l := range []*testLog{cutUp, plain} {
			for _, dialect := range dialects {
				in := l.input()
				in.Dialect = dialect
				sweep(t, in, 4000)
			}
		}
	}
}

func sweep(t *testing.T, in Input, to int) {
	t.Helper()
	var before Plan
	for in.Budget = 1; in.Budget < to; in.Budget++ {
		p := Build(in)
		shown := map[int64]bool{}
		for _, it := range p.Items {
			shown[it.Seq] = true
		}
		for _, it := range before.Items {
			if !shown[it.Seq] {
				t.Fatalf("budget %d shows seq %d, %d does not", in.Budget-1, it.Seq, in.Budget)
			}
		}
		before = p
	}
}

// TestPagesThatEndInAHeartbeat reads a log whose oldest loaded turn may or may
// not have done work.
func TestPagesThatEndInAHeartbeat(t *testing.T) {
	t.Parallel()
	for _, worked := range []bool{false, true} {
		l := &testLog{}
		for range 10 {
			l.user(50)
			l.say(50)
		}
		l.user(10, message.Heartbeat)
		if worked {
			l.call(10, "c")
			l.result(10, "c")
		}
		for range 3 {
			l.say(40)
			l.say(40, message.Heartbeat)
		}
		l.user(50)
		l.say(50)
		for budget := 60; budget < 600; budget += 7 {
			in := l.within(budget)
			want := Build(in)
			for from := range slices.Backward(l.entries) {
				part := in
				part.Entries, part.Older = l.entries[from:], from > 0
				if NeedMore(part) {
					continue
				}
				got := Build(part)
				got.LeftOut, want.LeftOut = nil, nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("worked %v, budget %d, from entry %d:\n%s", worked, budget, from, diff)
				}
			}
		}
	}
}
