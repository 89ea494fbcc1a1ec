package window

import (
	"slices"
	"strconv"

	"github.com/engined/engined/internal/message"
)

// Old tool results are the bulk of many windows and seldom read again. Pruning
// shows less of them: their beginning and end, then nothing but where the whole
// is. The log keeps them.
//
// What is pruned follows from log and budget alone. Results logged before a point
// are pruned, those behind it are not; the point is a multiple of a fixed number
// of tokens along the path, so it moves in steps and the prefix stays in between.

// PruneMode says how far pruning goes.
type PruneMode uint8

// The modes. PruneClear trims too.
const (
	PruneOff PruneMode = iota
	PruneTrim
	PruneClear
)

// Pruning are the rules by which old results are pruned. The zero value prunes
// nothing; other zero fields mean DefaultPruning's.
type Pruning struct {
	Mode PruneMode
	// KeepAssistants is how many of the newest assistant messages are left alone,
	// with all that follows them.
	KeepAssistants int
	// StepTokens is the distance of the places to which the point moves, in
	// uncalibrated tokens along the path.
	StepTokens int64
	// TrimOver is the size from which a result is trimmed to TrimTo, both for each
	// answer, in uncalibrated tokens.
	TrimOver, TrimTo int
	// TrimShare and ClearShare are the fill of the budget, in thousandths, from
	// which results are trimmed and, if that was not enough, cleared.
	TrimShare, ClearShare int64
}

// DefaultPruning are the host's numbers, in tokens for its characters: results
// over 4000 characters keep 3000, from three tenths of the window on, and go from
// half of it on, but for the newest three assistant messages.
func DefaultPruning() Pruning {
	return Pruning{KeepAssistants: 3, StepTokens: 4096, TrimOver: 1000, TrimTo: 750, TrimShare: 300, ClearShare: 500}
}

func (p Pruning) withDefaults() Pruning {
	d := DefaultPruning()
	if p.KeepAssistants <= 0 {
		p.KeepAssistants = d.KeepAssistants
	}
	if p.StepTokens <= 0 {
		p.StepTokens = d.StepTokens
	}
	if p.TrimOver <= 0 {
		p.TrimOver = d.TrimOver
	}
	if p.TrimTo <= 0 {
		p.TrimTo = d.TrimTo
	}
	p.TrimTo = max(p.TrimTo, minCut)
	p.TrimOver = max(p.TrimOver, p.TrimTo)
	if p.TrimShare <= 0 {
		p.TrimShare = d.TrimShare
	}
	if p.ClearShare <= 0 {
		p.ClearShare = d.ClearShare
	}
	p.TrimShare, p.ClearShare = min(p.TrimShare, 1000), min(max(p.ClearShare, p.TrimShare), 1000)
	return p
}

// pruned is what pruning does to the results of a layout.
type pruned struct {
	// trim and clear are the points before which results are trimmed and cleared,
	// in tokens along the path; 0 where none are.
	trim, clear int64
	// to is what an entry is cut to, in uncalibrated tokens; no member for others.
	to map[int32]int
}

// prunable is a result that pruning may make smaller.
type prunable struct {
	unit, entry int32
	calls       int
}

// prune lowers the charges of old results.
func (l *layout) prune() {
	rules := l.in.Prune
	if rules.Mode == PruneOff {
		return
	}
	rules = rules.withDefaults()
	kept, known := l.keptFrom(rules.KeepAssistants)
	// The label tells of the point even where nothing shown lies before it.
	l.unsettled = l.unsettled || !known && l.in.Older
	point := kept / rules.StepTokens * rules.StepTokens
	if point <= 0 {
		return
	}
	total := int64(0)
	for _, s := range l.in.Summaries {
		total += l.in.calibrated(s.Tokens) << chargeBits
	}
	for i := range l.units {
		total += l.units[i].charge
	}
	budget := l.in.budget() << chargeBits
	if total < budget/1000*rules.TrimShare {
		return
	}
	old := l.oldResults(point)
	l.pruned = pruned{trim: point, to: map[int32]int{}}
	for _, r := range old {
		e := &l.in.Entries[r.entry]
		if n := answers(e, r.calls); e.Tokens > n*rules.TrimOver {
			total -= l.pruneTo(r, n*rules.TrimTo)
		}
	}
	if rules.Mode != PruneClear {
		return
	}
	for _, r := range old {
		// Whole steps, oldest first, until it is enough.
		if at := l.in.Entries[r.entry].Offset; at > l.pruned.clear {
			if total < budget/1000*rules.ClearShare {
				return
			}
			l.pruned.clear = (at + rules.StepTokens - 1) / rules.StepTokens * rules.StepTokens
		}
		total -= l.pruneTo(r, answers(&l.in.Entries[r.entry], r.calls)*minCut)
	}
	if total >= budget/1000*rules.ClearShare {
		// Not enough with all of them. A reader that has not read the oldest ones
		// comes to the same.
		l.pruned.clear = point
	}
}

// keptFrom is where the n-th newest assistant message begins along the path, if
// there are as many.
func (l *layout) keptFrom(n int) (at int64, ok bool) {
	for i := range slices.Backward(l.in.Entries) {
		e := &l.in.Entries[i]
		if e.Role != message.Assistant || e.Flags.Has(message.Hidden) {
			continue
		}
		if n--; n == 0 {
			return max(e.Offset-int64(e.Tokens), 0), true
		}
	}
	return 0, false
}

// oldResults lists the shown results that were logged before the point and may be
// cut, in log order.
func (l *layout) oldResults(point int64) []prunable {
	var out []prunable
	for u := range l.units {
		calls := len(l.in.Entries[l.units[u].head].Calls)
		for _, r := range l.resultsOf(l.units[u]) {
			if e := &l.in.Entries[r]; e.Offset <= point && e.Seq <= l.lastRead && l.in.cap16(e, calls) > 0 {
				out = append(out, prunable{int32(u), r, calls})
			}
		}
	}
	slices.SortFunc(out, func(a, b prunable) int { return int(a.entry - b.entry) })
	return out
}

// pruneTo has a result cut to so many tokens, unless it takes no more already. It
// answers what that saves.
func (l *layout) pruneTo(r prunable, to int) int64 {
	e := &l.in.Entries[r.entry]
	was := l.in.charge(e, r.calls)
	if before, ok := l.pruned.to[r.entry]; ok {
		was = l.in.calibrated(before) << chargeBits
	}
	now := l.in.calibrated(to) << chargeBits
	if now >= was {
		return 0
	}
	l.pruned.to[r.entry] = to
	l.units[r.unit].charge -= was - now
	return was - now
}

// answers is how many calls of its group a result message answers.
func answers(e *Entry, calls int) int { return max(min(len(e.Results), calls), 1) }

// label tells of the points in the epoch's label.
func (p *pruned) label() string {
	switch {
	case p.clear > 0:
		return ".p" + strconv.FormatInt(p.trim, 10) + "-" + strconv.FormatInt(p.clear, 10)
	case p.trim > 0:
		return ".p" + strconv.FormatInt(p.trim, 10)
	}
	return ""
}
