package window

import (
	"math/bits"

	"github.com/engined/engined/internal/message"
)

// rulerUnit is the distance of the finest marks on the ruler, in raw tokens.
// With 3 the marks lie between the powers of two that budgets tend to be near;
// there a mark would come into reach shortly after another was taken.
const rulerUnit = 3

// level is how coarse the coarsest mark of the ruler is that lies between two
// places in the log: the largest k for which a multiple of rulerUnit·2^k lies
// in (from, to]; -1 for none.
func level(from, to int64) int {
	a, b := uint64(max(from, 0))/rulerUnit, uint64(max(to, 0))/rulerUnit
	return bits.Len64(a^b) - 1
}

// edges are the places where a tail may start: before each unit, but for those
// at which the provider would refuse the window. The place behind the last unit
// moves with every append and is taken only where there is no other.
type edges struct {
	*layout
	userFirst   bool
	firstPinned int
}

// edges of this path. Where an Anthropic window begins with no summary, its
// first message must be the user's.
func (l *layout) edges() edges {
	return l.edgesWith(len(l.in.Summaries) > 0)
}

func (l *layout) edgesWith(summaries bool) edges {
	e := edges{layout: l, firstPinned: len(l.units)}
	if l.in.Dialect != message.Anthropic || summaries {
		return e
	}
	for i := range l.units {
		e.userFirst = e.userFirst || l.units[i].user
		if l.units[i].pinned != none {
			e.firstPinned = min(e.firstPinned, i)
		}
	}
	return e
}

// allowed reports whether a tail may start at unit i.
func (e edges) allowed(i int) bool {
	switch {
	case !e.userFirst:
		return true
	case i <= e.firstPinned:
		return e.units[i].user
	default:
		// Pinned messages come first then, and among them the user's.
		return i > e.newestUser
	}
}

// next is the first edge at or behind i.
func (e edges) next(i int) int {
	for ; i < len(e.units); i++ {
		if e.allowed(i) {
			return i
		}
	}
	return len(e.units)
}

// at is where the edge before unit i lies in the log, in raw tokens.
func (e edges) at(i int) int64 {
	h := &e.in.Entries[e.units[i].head]
	return h.Offset - int64(h.Tokens)
}

// pick chooses among the edges in [first, last] the one at the coarsest mark
// of the ruler, the leftmost of equals. Marks are fixed in the log, so the
// choice stays while the log grows until its edge no longer fits or a coarser
// mark comes into reach. Without an edge in [first, last] it is the next one
// behind first.
func (e edges) pick(first, last int) int {
	before := -1
	for i := first - 1; i >= 0 && before < 0; i-- {
		if e.allowed(i) {
			before = i
		}
	}
	best, bestLevel := -1, -2
	for i := first; i <= last && i < len(e.units); i++ {
		if !e.allowed(i) {
			continue
		}
		l := -1
		if before >= 0 {
			l = level(e.at(before), e.at(i))
		}
		if before = i; l > bestLevel {
			best, bestLevel = i, l
		}
	}
	if best < 0 {
		return e.next(first)
	}
	return best
}
