package window

import "slices"

// settleOdd handles groups in which one message answers several calls or one
// id names several calls. A message is shown whole or not at all, so a newer
// answer replaces older ones only where no call loses its answer by that.
func (p *pairing) settleOdd(g *group) {
	// answer[c] is the shown result of call c, calls[r] what result r answers.
	answer := make([]int32, g.calls)
	for c := range answer {
		answer[c] = -1
	}
	calls := p.replies(g)
	answered := 0
	for r := g.first; r >= 0; r = p.next[r] {
		if len(calls[r]) == 0 {
			p.why[r] = OrphanResult
			continue
		}
		var lost []int32
		gain := len(calls[r])
		for _, c := range calls[r] {
			if was := answer[c]; was >= 0 && !slices.Contains(lost, was) {
				lost = append(lost, was)
				gain -= len(calls[was])
			}
		}
		if gain < 0 {
			p.why[r] = Superseded
			continue
		}
		for _, was := range lost {
			p.why[was], p.at[was] = Superseded, p.in.Entries[r].Seq
			g.changedAt = p.in.Entries[r].Seq
			for _, c := range calls[was] {
				answer[c] = -1
			}
		}
		for _, c := range calls[r] {
			answer[c] = r
		}
		if answered += gain; answered == len(answer) && g.doneAt == 0 {
			g.doneAt = p.in.Entries[r].Seq
		}
	}
	for _, r := range answer {
		if r >= 0 && !slices.Contains(p.results[g.from:], r) {
			p.results = append(p.results, r)
		}
	}
}

// replies says which calls each answer of a group is for. Where an id names
// several calls, the first answer is for the first of them, and so on; the
// last call takes what comes after. A message that answers a call twice is for
// none.
func (p *pairing) replies(g *group) map[int32][]int32 {
	places := make(map[string][]int32, g.calls)
	for c, id := range p.in.Entries[g.head].Calls {
		places[id] = append(places[id], int32(c))
	}
	used := make(map[string]int)
	out := make(map[int32][]int32)
	for r := g.first; r >= 0; r = p.next[r] {
		times := make(map[string]int)
		for _, id := range p.in.Entries[r].Results {
			times[id]++
		}
		var calls []int32
		for _, id := range p.in.Entries[r].Results {
			at, n := places[id], times[id]
			if n > len(at) {
				calls = nil
				break
			}
			from := min(used[id], len(at)-n)
			if n > 0 {
				calls = append(calls, at[from:from+n]...)
				used[id], times[id] = from+n, 0
			}
		}
		out[r] = calls
	}
	return out
}
