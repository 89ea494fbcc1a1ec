package compact

import (
	"cmp"
	"slices"

	"github.com/engined/engined/internal/events"
)

// planned is a summary of the live set while it is drawn up. tokens is an upper
// bound for those yet to be written.
type planned struct {
	node   Node
	level  int
	tokens int
	covers []events.Range
	stage  int
}

// condense combines summaries until they fit: runs of one level that have grown
// past the fan-in while space is getting short, then whatever is needed.
//
// Runs of equal level come first, the longest one, and of equally long ones the
// oldest, so that recent work keeps its detail and the tree stays flat.
func (p *planner) condense() {
	for p.liveTokens() > p.sumMax/2 {
		at, n := p.longestRun()
		if n <= p.policy.FanIn || !p.combine(at, p.policy.FanIn) {
			break
		}
	}
	for p.liveTokens() > p.sumMax {
		at, n := p.longestRun()
		if n < 2 {
			at, n = p.lowestPair()
		}
		if n < 1 || !p.combine(at, min(n, p.policy.FanIn)) && !p.combineAny() {
			break
		}
	}
}

// combineAny helps out where the best neighbours are too small already for
// their combination to save anything: it takes the first few that do.
func (p *planner) combineAny() bool {
	for n := 2; n <= min(p.policy.FanIn, len(p.live)); n++ {
		for at := 0; at+n <= len(p.live); at++ {
			if p.combine(at, n) {
				return true
			}
		}
	}
	return false
}

func (p *planner) liveTokens() int {
	total := 0
	for _, n := range p.live {
		total += n.tokens
	}
	return total
}

// longestRun finds neighbours of one level. A run counts only up to the fan-in:
// beyond that the older one is as good.
func (p *planner) longestRun() (at, n int) {
	best := 0
	for i := 0; i < len(p.live); {
		j := i
		for j < len(p.live) && p.live[j].level == p.live[i].level {
			j++
		}
		if c := min(j-i, p.policy.FanIn+1); c > best {
			best, at, n = c, i, j-i
		}
		i = j
	}
	return at, n
}

// lowestPair finds the neighbours whose combination is lowest in the tree; a
// single summary that is too large by itself is condensed alone.
func (p *planner) lowestPair() (at, n int) {
	if len(p.live) == 1 && p.live[0].tokens > p.sumMax && p.live[0].node.Step == 0 {
		return 0, 1
	}
	low := -1
	for i := 0; i+1 < len(p.live); i++ {
		if l := max(p.live[i].level, p.live[i+1].level); low < 0 || l < low {
			low, at, n = l, i, 2
		}
	}
	return at, n
}

// combine replaces n live summaries by one of the next level. It refuses where
// that would save next to nothing.
func (p *planner) combine(at, n int) bool {
	run := p.live[at : at+n]
	step := Step{}
	source := 0
	for _, c := range run {
		step.Level = max(step.Level, c.level+1)
		step.Children = append(step.Children, c.node)
		step.Covers = append(step.Covers, c.covers...)
		source += c.tokens
		if c.node.Step > 0 {
			step.stage = max(step.stage, c.stage+1)
		}
	}
	step.Covers = mergeRanges(step.Covers)
	upper := min(max(share(source, p.policy.CondenseShare), p.least), p.sumCap, p.sumMax)
	if upper > source*4/5 {
		return false
	}
	p.live = slices.Replace(p.live, at, at+n, p.add(step, source, upper))
	return true
}

// mergeRanges sorts ranges and joins those that touch.
func mergeRanges(in []events.Range) []events.Range {
	slices.SortFunc(in, func(a, b events.Range) int { return cmp.Compare(a.From, b.From) })
	var out []events.Range
	for _, r := range in {
		if n := len(out); n > 0 && out[n-1].To+1 >= r.From {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}
