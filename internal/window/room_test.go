package window

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

// TestWithLessThanHalfUsedTheNextUnitDoesNotFit looks at small budgets, where
// units are large beside the budget and half of it may be out of reach. Then the
// unit before the tail has no room, and three things take room that is not seen
// in the window's tokens:
//
//   - a summary that is left out keeps its share (at most three eighths of the
//     budget): with a little more budget it is shown, and the messages beside it
//     must not be fewer then;
//   - an Anthropic window that starts within a turn needs that turn's user
//     message as well;
//   - a cut result is charged its exact share and shows whole tokens.
func TestWithLessThanHalfUsedTheNextUnitDoesNotFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := mess(t, 80, rapid.IntRange(1, 110)).input()
		in.Dialect = rapid.SampledFrom(dialects).Draw(t, "dialect")
		in.Summaries = summaries(t)
		in.Budget = rapid.IntRange(64, 512).Draw(t, "budget")
		p := Build(in)
		if p.TrimFrom == 0 || 2*p.Tokens >= in.Budget {
			return
		}
		if in.Dialect == message.Anthropic && len(in.Summaries) > 0 && len(p.Summaries) == 0 {
			t.Skip("such a window starts with a turn, wherever that is")
		}
		l := arrange(in)
		f := l.fit()
		next := f.start - 1
		for next >= 0 && l.units[next].pinned != none {
			next--
		}
		if next < f.lead {
			return
		}
		used := p.Tokens + int(l.units[next].charge>>chargeBits)
		if anchor := l.edgesBehind(len(p.Summaries) > 0).anchor(next); anchor >= 0 {
			used += int(l.units[anchor].charge >> chargeBits)
		}
		all, shown, cut := 0, 0, 1
		for _, s := range in.Summaries {
			all += s.Tokens
		}
		for _, s := range p.Summaries {
			shown += s.Tokens
		}
		for _, it := range p.Items {
			if it.CutTo > 0 {
				cut++
			}
		}
		if kept := min(all, in.Budget*3/8+1) - shown; used+max(kept, 0)+cut <= in.Budget {
			t.Fatalf("budget %d: %d tokens used, %d kept for summaries, and the next unit (%d) would fit: %v",
				in.Budget, p.Tokens, kept, l.units[next].charge>>chargeBits, seqs(p))
		}
	})
}
