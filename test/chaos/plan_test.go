package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// step is what happens in a cycle.
type step struct {
	// faults are indexes into the list; the second begins while the first holds
	// where together is set.
	faults   []int
	together bool
	// after and held are the acknowledged writes before a fault and while it
	// holds, bounded in time where nothing can be acknowledged.
	after, held []int64
	// clock is the jump of the clients' clocks, in milliseconds.
	clock int64
	// erase: the session that leaves in this cycle is erased under load.
	erase bool
	// chance seeds what the faults choose.
	chance uint64
}

// plan draws the cycles of a run. Every fault comes before any comes again.
func plan(seed uint64, cycles int, faults []fault) []step {
	r := rand.New(rand.NewPCG(seed, 1))
	var deck []int
	draw := func(not string) int {
		for {
			if len(deck) == 0 {
				deck = r.Perm(len(faults))
			}
			i := slices.IndexFunc(deck, func(f int) bool { return faults[f].on != not })
			if i < 0 {
				deck = nil
				if !slices.ContainsFunc(faults, func(f fault) bool { return f.on != not }) {
					return -1
				}
				continue
			}
			f := deck[i]
			deck = slices.Delete(deck, i, i+1)
			return f
		}
	}
	var out []step
	for i := range cycles {
		s := step{chance: r.Uint64(), erase: i%2 == 1, together: r.IntN(2) == 0}
		first := draw("")
		s.faults = []int{first}
		if second := draw(faults[first].on); second >= 0 {
			s.faults = append(s.faults, second)
		}
		for range s.faults {
			s.after, s.held = append(s.after, 1+r.Int64N(8)), append(s.held, r.Int64N(10))
		}
		if r.IntN(2) == 0 {
			s.clock = (r.Int64N(2)*2 - 1) * (1 + r.Int64N(400*24*3600*1000))
		}
		out = append(out, s)
	}
	return out
}

func TestASeedReplaysItsPlan(t *testing.T) {
	t.Parallel()
	a, b, other := plan(7, 50, faults), plan(7, 50, faults), plan(8, 50, faults)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("the same seed gives two plans")
	}
	if fmt.Sprint(a) == fmt.Sprint(other) {
		t.Error("two seeds give the same plan")
	}
	times := make([]int, len(faults))
	for _, s := range a {
		for _, f := range s.faults {
			times[f]++
		}
		if len(s.faults) == 2 && faults[s.faults[0]].on == faults[s.faults[1]].on {
			t.Errorf("two faults break the same thing: %v", s)
		}
	}
	for f, n := range times {
		if n == 0 {
			t.Errorf("never injected: %s", faults[f].name)
		}
	}
}
