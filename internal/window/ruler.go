package window

import (
	"math/bits"

	"github.com/engined/engined/internal/message"
)

// rulerUnit is the distance of the finest marks on the ruler, in raw tokens. It
// shifts the marks against the budgets that are common (powers of two, and
// 100,000 or 200,000): just above twice a mark's distance the next coarser mark
// would come into reach shortly after another was taken.
const rulerUnit = 23

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
	// userFirst: nothing of the engine's begins the window, and the provider
	// wants the user to.
	userFirst bool
	// notice: the provider wants the user to begin, none is there, and something
	// must be shown.
	notice bool
	// min is the first edge.
	min int
	// firstPinned is the first unit that is always shown.
	firstPinned int
}

// edgesBehind are the edges of a tail that follows summaries or does not. An
// Anthropic window without them begins at a user message: a tail that starts
// within a turn has that turn's user message in front of it, its anchor. Where no
// user has spoken there is no such place, and the tail is empty; but where a turn
// is under way the engine's notice begins the window: what a reset kept, or what an
// ancestor's erasure left, may be the inside of a turn.
func (l *layout) edgesBehind(summaries bool) edges {
	e := edges{layout: l, firstPinned: len(l.units)}
	if l.in.Dialect != message.Anthropic || summaries {
		return e
	}
	for i := range l.units {
		if l.units[i].pinned != none {
			e.firstPinned = min(e.firstPinned, i)
		}
		if l.units[i].user && !e.userFirst {
			e.userFirst, e.min = true, i
		}
	}
	switch {
	case !e.userFirst && e.firstPinned == len(l.units):
		e.min = len(l.units)
	case !e.userFirst:
		e.notice = true
	case e.firstPinned < e.min:
		// The user message goes in front of what is pinned before it.
		e.min++
	}
	return e
}

// edges of this path.
func (l *layout) edges() edges { return l.edgesBehind(len(l.in.Summaries) > 0) }

// anchored reports whether a tail that starts at unit i needs an anchor.
func (e edges) anchored(i int) bool {
	return e.userFirst && (i >= len(e.units) || !e.units[i].user || e.firstPinned < i)
}

// anchor is the user message in front of a tail that starts at unit i; -1
// where it needs none.
func (e edges) anchor(i int) int {
	if !e.anchored(i) {
		return -1
	}
	for i--; i >= 0 && !e.units[i].user; i-- {
	}
	return i
}

// at is where the edge before unit i lies in the log, in raw tokens.
func (e edges) at(i int) int64 {
	h := &e.in.Entries[e.units[i].head]
	return h.Offset - int64(h.Tokens)
}

// pick chooses among the edges in [first, last] the one at the coarsest mark
// of the ruler, the leftmost of equals. Marks are fixed in the log, so the
// choice stays while the log grows until its edge no longer fits or a coarser
// mark comes into reach. Where last lies before first it is first.
func (e edges) pick(first, last int) int {
	best, bestLevel := first, -2
	for i := first; i <= last && i < len(e.units); i++ {
		l := -1
		if i > 0 {
			l = level(e.at(i-1), e.at(i))
		}
		if l > bestLevel {
			best, bestLevel = i, l
		}
	}
	return best
}
