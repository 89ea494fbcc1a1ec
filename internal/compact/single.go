package compact

import "slices"

// Single is the policy of plans that end in one summary: whatever older
// summaries there are is retold in it, so the window holds one account of the
// past and the newest messages.
type Single struct {
	// KeepTokens bounds the tail beside Policy.TailShare; 0 is no bound of its own.
	KeepTokens int
	// KeepTurns has the tail begin with a user message and hold the newest turns,
	// as many as fit and at most this; 0 fills the tail by tokens.
	KeepTurns int
	// ApartTurn gives the covered part of the newest turn a summary of its own
	// behind the other: what led to the messages right after it.
	ApartTurn bool
	// MaxTokens bounds the summary where it is more than Policy.MaxSummaryTokens.
	MaxTokens int
}

// NewSinglePlan plans as NewPlan does, with its rules of what may be covered and
// in which chunks, but combines the summaries into one. Only where that would
// save nothing do two stay.
func NewSinglePlan(in PlanInput, s Single) (Plan, Stop) {
	p := newPlanner(in)
	p.single = &s
	if s.KeepTokens > 0 {
		p.tailMax = min(p.tailMax, calibrate(s.KeepTokens, p.factor))
		p.slack = p.tailMax / 4
	}
	if stop := p.idle(); stop != "" {
		return Plan{}, stop
	}
	tail := p.chooseTail()
	if s.KeepTurns > 0 {
		tail = p.chooseTurns(tail, s.KeepTurns)
	}
	p.draw(p.cutChunks(tail))
	return p.finish(tail)
}

// chooseTurns moves the start of the tail to that of its n-th newest turn. A
// tail that starts within a turn is left alone: the turn is larger than it.
func (p *planner) chooseTurns(first, n int) int {
	start := first
	for i := len(p.units) - 1; i >= first && n > 0; i-- {
		if p.units[i].User && p.units[i].Tokens > 0 {
			start = i
			n--
		}
	}
	if n > 0 {
		return first
	}
	return start
}

// retell combines all summaries into one, stage by stage, so that no summary is
// made of more than the fan-in.
func (p *planner) retell(chunks []chunk) {
	if len(chunks) == 0 && p.before <= p.limit {
		return // nothing new to tell
	}
	old := len(p.live) - len(chunks)
	p.sumCap = min(max(p.goal-p.tailMax, p.least), max(p.single.MaxTokens, p.policy.MaxSummaryTokens, p.least))
	if p.single.ApartTurn {
		// Chunks do not reach across the newest user message.
		turn := p.newestTurn()
		i := slices.IndexFunc(chunks, func(c chunk) bool { return c.units[0] > turn })
		if apart := old + i; i >= 0 && apart > 0 {
			p.retellApart(apart)
			return
		}
	}
	p.retellRun(0, len(p.live))
}

// retellApart makes two summaries that share the room: the second, from that
// place on, has half of it at most, the first what that leaves.
func (p *planner) retellApart(at int) {
	all, room := p.sumMax, p.sumMax
	p.sumMax = max(room/2, p.least)
	p.retellRun(at, len(p.live)-at)
	for _, n := range p.live[at:] {
		room -= n.tokens
	}
	p.sumMax = max(room, p.least)
	p.retellRun(0, at)
	p.sumMax = all
}

// retellRun combines n neighbours into one, as far as that saves anything. One
// alone is told shorter where there is no room for it.
func (p *planner) retellRun(at, n int) {
	if n == 1 && p.live[at].tokens > p.sumMax {
		p.shorten(at)
	}
	for n > 1 {
		combined := 0
		for i := 0; i < n; i++ {
			run := min(p.policy.FanIn, n-i)
			if run > 1 && p.combine(at+i, run) {
				n -= run - 1
				combined++
			}
		}
		if combined == 0 {
			return
		}
	}
}

// shorten bounds a summary to the room that there is: one of the log is told
// again.
func (p *planner) shorten(at int) {
	one := &p.live[at]
	if one.node.Step == 0 {
		p.combine(at, 1)
		return
	}
	one.tokens = p.sumMax
	p.steps[one.node.Step-1].MaxTokens = uncalibrate(p.sumMax, p.factor)
}

// newestTurn is the unit of the newest user message.
func (p *planner) newestTurn() int {
	for i, u := range slices.Backward(p.units) {
		if u.User && u.keep {
			return i
		}
	}
	return -1
}
