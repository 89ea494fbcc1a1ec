package window

import (
	"github.com/engined/engined/internal/message"
)

// Charges decide what fits. They are calibrated tokens in fixed point, so that
// a cut result is charged its exact share of the budget: with a budget t times
// as large no charge grows by more than t, and hence whatever fits a budget
// fits every larger one. (With shares rounded to tokens that would be false.)
const chargeBits = 16

// minCut is the least that a result is cut to, in uncalibrated tokens for each
// call that it answers: enough for the ending, some text and the JSON around.
const minCut = 96

// minNoteCut is the same for a note, whose command may stay whole beside it.
const minNoteCut = minCut + message.MaxUncutCommand

// share is the part of the budget that one result of a group may use, as a
// divisor: an eighth, and so little that all results of a group together use
// half of the budget at most. A power of two up to 1<<chargeBits.
func share(calls int) int64 {
	d := int64(8)
	for d < 2*int64(calls) && d < 1<<chargeBits {
		d *= 2
	}
	return d
}

// cap16 is the charge at which a result or a note is cut; 0 is never. It depends
// on the message, the number of calls it was made with and the budget, never
// on the room left. Images and text of the user are not cut, and how much of a
// message they are is not known here.
func (p Params) cap16(e *Entry, calls int) int64 {
	if !e.Flags.Has(message.Cuttable) || e.Flags&(message.HasImage|message.UserText) != 0 {
		return 0
	}
	if e.Role == message.Note {
		return max(p.calibrated(minNoteCut)<<chargeBits, p.budget()<<chargeBits/share(0))
	}
	answers := int64(min(len(e.Results), calls))
	return answers * max(p.calibrated(minCut)<<chargeBits, p.budget()<<chargeBits/share(calls))
}

// charge is what a message costs in the window at most. calls is the number of
// calls of the message that it answers.
func (p Params) charge(e *Entry, calls int) int64 {
	whole := p.calibrated(e.Tokens) << chargeBits
	if limit := p.cap16(e, calls); limit > 0 {
		return min(whole, limit)
	}
	return whole
}

// cut is the uncalibrated number of tokens to cut a message to, 0 for none,
// and the calibrated estimate of what is shown then.
func (p Params) cut(e *Entry, calls int) (to int, tokens int64) {
	whole := p.calibrated(e.Tokens)
	limit := p.cap16(e, calls) >> chargeBits
	if limit == 0 || whole <= limit {
		return 0, whole
	}
	to = int(limit * 1000 / p.factor())
	return to, p.calibrated(to)
}

// Cuts tells whether a window of these parameters cuts a message, which answers one
// of so many calls.
func (p Params) Cuts(e *Entry, calls int) bool {
	to, _ := p.cut(e, calls)
	return to > 0
}

// fitting is the outcome of the search for the tail's start.
type fitting struct {
	// start is the unit at which the tail begins, lead the number of units that
	// stand before the first user message and are not wanted there.
	start, lead int
	// first is the leftmost start that fits.
	first int
	// summaryRoom is the charge that summaries may use.
	summaryRoom int64
}

// fit finds where the tail starts. Everything it compares is a charge, and
// each bound moves one way only as the budget grows: first, the leftmost start
// that fits, and last, the rightmost that still uses enough, both move left.
// So does the edge that the ruler picks between them.
func (l *layout) fit() fitting {
	budget := l.in.budget() << chargeBits
	var summaries, pinned, rest int64
	for _, s := range l.in.Summaries {
		summaries += l.in.calibrated(s.Tokens) << chargeBits
	}
	for i := range l.units {
		if u := &l.units[i]; u.pinned != none {
			pinned += u.charge
		} else {
			rest += u.charge
		}
	}
	e := l.edges()
	if e.notice {
		pinned += l.in.calibrated(openingTokens) << chargeBits
	}
	lead := 0
	if !l.in.Older {
		lead = e.min
	}
	if summaries+pinned+rest <= budget {
		return fitting{start: e.min, first: e.min, lead: lead, summaryRoom: budget - pinned - rest}
	}

	// Summaries hold their share of the tail's room even where one of them does
	// not fit into it and is left out: else a larger budget, with room for that
	// one, would have less room for messages.
	reserved := min(summaries, budget/8*3)
	room := max(budget-pinned-reserved, 0)
	first, last := l.bounds(e, rest, room, enough(budget, summaries)-pinned)
	f := fitting{first: first, lead: lead, start: e.pick(first, last), summaryRoom: max(min(reserved, budget-pinned), 0)}
	if first <= lead && !l.in.Older {
		f.start = lead
		f.summaryRoom = max(f.summaryRoom, budget-pinned-rest)
	}
	return f
}

// enough is what messages should use of a budget at least, so that the window
// uses a little more than the half that is promised: a cut result may use less
// than its charge. Summaries count where all of them fit. Where one is left out
// none may be shown, and messages alone have to use the half; from there on it
// never falls as the budget grows.
func enough(budget, summaries int64) int64 {
	return max(budget/64*33-summaries, min(budget, summaries/3*8)/64*33)
}

// bounds are the first edge at which a tail fits into room, and the last of
// those at which it uses enough; rest is the charge of all units that are not
// pinned. What a tail uses falls from edge to edge: an anchor stands for a unit
// that the edges before it show anyway.
func (l *layout) bounds(e edges, rest, room, enough int64) (first, last int) {
	first, last = -1, -1
	anchor := int64(0)
	for i := 0; i <= len(l.units); i++ {
		used := rest
		if e.anchored(i) {
			used += anchor
		}
		if i >= e.min && used <= room {
			if first < 0 {
				first = i
			}
			if used < enough {
				break
			}
			last = i
		}
		if i == len(l.units) || l.units[i].pinned != none {
			if i < len(l.units) && l.units[i].user {
				anchor = 0
			}
			continue
		}
		rest -= l.units[i].charge
		if l.units[i].user {
			anchor = l.units[i].charge
		}
	}
	return first, last
}
