package compact

import (
	"slices"

	"github.com/engined/engined/internal/events"
)

// NewPlan says which summaries to write, or why there is nothing to do. It is
// pure: the same input gives the same plan.
//
// A plan covers the oldest messages in chunks along tool-group edges and leaves
// the newest ones as they are. What must stay (see unitsOf) stays wherever it
// is, so a turn larger than the tail is split around its user message. Then the
// summaries are combined, oldest first, until they fit beside the tail. What is
// left of the goal then goes to the tail. Every plan makes the window smaller.
func NewPlan(in PlanInput) (Plan, Stop) {
	p := newPlanner(in)
	if stop := p.idle(); stop != "" {
		return Plan{}, stop
	}

	tail := p.chooseTail()
	chunks := p.cutChunks(tail)
	p.draw(chunks)
	if !in.Force {
		tail, chunks = p.growTail(tail, chunks)
	}
	p.draw(chunks)
	// A partial last chunk may wait for the rest of it, if the goal is met
	// without: it would be a small summary, and its draft of no use next time.
	for n := len(chunks) - 1; !in.Force && n > 0 && chunks[n].weight < p.policy.ChunkTokens/2; n-- {
		if p.draw(chunks[:n]); p.after > p.goal {
			p.draw(chunks)
			break
		}
		chunks = chunks[:n]
	}
	return p.finish(tail)
}

func newPlanner(in PlanInput) *planner {
	p := &planner{in: in, policy: in.Policy.WithDefaults(), factor: in.FactorMilli}
	if p.factor <= 0 {
		p.factor = 1000
	}
	p.budget = in.Budget
	if in.Target > 0 && (in.Budget <= 0 || in.Target < in.Budget) {
		p.budget = in.Target
	}
	p.least = calibrate(p.policy.MinSummaryTokens, p.factor)
	p.units = unitsOf(in.Entries, p.factor, p.budget)
	for _, u := range p.units {
		p.before += u.Tokens
	}
	for _, s := range in.Live {
		p.before += calibrate(s.Tokens, p.factor)
	}
	p.setLimits()
	return p
}

// planner holds one planning; all token counts in it are calibrated.
type planner struct {
	in     PlanInput
	policy Policy
	// single is set for a plan that ends in one summary.
	single *Single
	factor int
	// budget is the smaller of budget and target, 0 for none. least is the least
	// that a summary is given.
	budget, least int
	units         []unit

	before int
	// limit is what the window must be within, goal what to aim for, tailMax what
	// the newest messages may take, sumMax what all summaries may take together
	// and sumCap what one may.
	limit, goal, tailMax, sumMax, sumCap int
	// slack is how much of the tail may go so that it starts with a turn.
	slack int
	// roomSet keeps sumMax as it is.
	roomSet bool

	covered []bool
	steps   []Step
	live    []planned
	kept    int
	after   int
}

func (p *planner) setLimits() {
	b := p.budget
	if b <= 0 {
		b = p.before
	}
	p.limit = b
	p.goal = share(b, p.policy.TargetShare)
	p.tailMax = share(b, p.policy.TailShare)
	p.sumCap = min(max((p.goal-p.tailMax)/8/p.least, 1)*p.least, max(p.policy.MaxSummaryTokens, p.least))
	if p.in.Force {
		present := min(p.before, b)
		p.limit = min(p.limit, present-1)
		p.tailMax = min(p.tailMax, present/2)
	}
	p.slack = p.tailMax / 4
}

// minSource is the least that is worth a summary: its bound is then at most
// four fifths of what it replaces.
func (p *planner) minSource() int { return p.least * 5 / 4 }

// idle says why nothing is to be done, as far as that is known beforehand.
func (p *planner) idle() Stop {
	over := p.budget > 0 && p.before > p.budget
	switch {
	case over:
		return ""
	case p.in.Force:
		if len(p.in.Live) > 0 && p.in.CompactedAt > 0 && !p.grownSince(p.in.CompactedAt) {
			return StopCompacted
		}
		return ""
	case p.budget <= 0:
		return StopNothing
	case p.policy.Owes(p.before, p.in.Budget):
		return ""
	}
	return StopUnderTarget
}

func (p *planner) grownSince(seq int64) bool {
	for _, u := range p.units {
		if u.Tokens > 0 && p.in.Entries[u.Entries[len(u.Entries)-1]].Seq > seq {
			return true
		}
	}
	return false
}

// chooseTail answers the first unit of the tail. What must be kept counts first;
// then the newest units follow while there is room. A tail that starts a little
// before a turn starts with the turn.
func (p *planner) chooseTail() int {
	room := p.tailMax
	for _, u := range p.units {
		if u.keep {
			room -= u.Tokens
		}
	}
	first := len(p.units)
	for first > 0 {
		u := p.units[first-1]
		if !u.keep {
			if u.Tokens > room {
				break
			}
			room -= u.Tokens
		}
		first--
	}
	slack := p.slack
	for i := first; i < len(p.units) && slack >= 0; i++ {
		if p.units[i].User {
			return i
		}
		if p.units[i].keep {
			break
		}
		slack -= p.units[i].Tokens
	}
	return first
}

// chunk is a run of units that one first-level summary covers.
type chunk struct {
	units  []int
	shown  int
	weight int
}

// cutChunks cuts what is older than the tail, oldest first, so that edges stay
// where they are while the session grows. Units that show nothing go with their
// neighbours. A chunk never reaches across the newest user message, and a rest
// too small for a summary is left alone.
func (p *planner) cutChunks(tail int) []chunk {
	var chunks []chunk
	var cur chunk
	end := func() {
		if cur.shown >= p.minSource() {
			chunks = append(chunks, cur)
		}
		cur = chunk{}
	}
	for i := range tail {
		u := p.units[i]
		if u.keep {
			if u.User {
				end()
			}
			continue
		}
		if cur.shown >= p.minSource() && u.Tokens > 0 && cur.weight+u.weight > p.policy.ChunkTokens {
			end()
		}
		cur.units = append(cur.units, i)
		cur.shown += u.Tokens
		cur.weight += u.weight
	}
	end()
	return chunks
}

// draw lays out steps and the live set for these chunks.
func (p *planner) draw(chunks []chunk) {
	p.covered = make([]bool, len(p.units))
	p.steps, p.live = nil, nil
	messages := 0
	for _, u := range p.units {
		messages += u.Tokens
	}
	for _, c := range chunks {
		messages -= c.shown
	}
	p.setSummaryRoom(messages)
	for _, s := range p.in.Live {
		p.live = append(p.live, planned{node: Node{Seq: s.Seq}, level: s.Level, tokens: calibrate(s.Tokens, p.factor), covers: s.Covers})
	}
	for _, c := range chunks {
		p.addChunk(c)
	}
	if p.single != nil {
		p.retell(chunks)
	} else {
		p.condense()
	}
	p.kept, p.after = messages, messages
	for _, n := range p.live {
		p.after += n.tokens
		if n.node.Step == 0 {
			p.kept += n.tokens
		}
	}
}

// setSummaryRoom gives the summaries what the kept messages leave of the goal,
// but not under a tenth of the limit: a large message passes, while what is
// condensed for its sake stays condensed. Only a forced compaction squeezes
// them further, where that makes the window fit.
func (p *planner) setSummaryRoom(messages int) {
	if p.roomSet {
		return
	}
	floor := p.limit / 10
	if fit := p.limit - messages; p.in.Force && fit >= p.least {
		floor = min(floor, fit)
	}
	p.sumMax = max(min(p.goal, p.limit)-messages, floor, p.least)
}

func (p *planner) addChunk(c chunk) {
	var seqs []int64
	for _, u := range c.units {
		p.covered[u] = true
		for _, i := range p.units[u].Entries {
			seqs = append(seqs, p.in.Entries[i].Seq)
		}
	}
	slices.Sort(seqs)
	ranges := rangesOf(seqs)
	upper := min(max(share(c.shown, p.policy.SummaryShare), p.least), p.sumCap, p.sumMax)
	p.add(Step{Level: 1, SourceSeqs: seqs, Sources: ranges, Covers: ranges}, c.shown, upper)
}

// add makes a step that replaces source tokens by at most upper.
func (p *planner) add(s Step, source, upper int) planned {
	s.ID = len(p.steps) + 1
	s.SourceTokens, s.MaxTokens = uncalibrate(source, p.factor), uncalibrate(upper, p.factor)
	p.steps = append(p.steps, s)
	n := planned{node: Node{Step: s.ID}, level: s.Level, tokens: upper, covers: s.Covers, stage: s.stage}
	if s.Level == 1 {
		p.live = append(p.live, n)
	}
	return n
}

// finish holds the plan against its own promise.
func (p *planner) finish(tail int) (Plan, Stop) {
	gain, enough := p.before-p.after, 1
	if !p.in.Force && (p.before <= p.limit || p.after > p.limit) {
		enough = max(share(p.in.Budget, p.policy.MinGainShare), 1)
	}
	if len(p.steps) == 0 || gain < enough {
		return Plan{}, StopNothing
	}
	out := Plan{
		Epoch: p.in.Epoch, Steps: p.steps,
		TokensBefore: p.before, TokensAfterMax: p.after,
		KeptTokens: p.kept, FactorMilli: p.factor,
	}
	for _, n := range p.live {
		out.Live = append(out.Live, n.node)
		if n.node.Step == 0 {
			out.KeepLive = append(out.KeepLive, n.node.Seq)
		}
	}
	for i, u := range p.units {
		if p.covered[i] {
			continue
		}
		seq := p.in.Entries[u.Entries[0]].Seq
		if out.FirstKept == 0 && u.Tokens > 0 {
			out.FirstKept = seq
		}
		if i >= tail && out.TailFrom == 0 {
			out.TailFrom = seq
		}
	}
	return out, ""
}

// rangesOf writes ascending seqs as ranges that hold nothing else.
func rangesOf(seqs []int64) []events.Range {
	var out []events.Range
	for _, s := range seqs {
		if n := len(out); n > 0 && out[n-1].To+1 == s {
			out[n-1].To = s
			continue
		}
		out = append(out, events.Range{From: s, To: s})
	}
	return out
}
