package compact

import (
	"slices"

	"github.com/engined/engined/internal/message"
)

// measure tells what a message takes in a window, in calibrated tokens.
type measure struct {
	factor int
	// budget is 0 where nothing is cut.
	budget int
}

// The window cuts a result to its share of the budget: an eighth, less where
// more than four calls were made at once, and not under leastCut.
const (
	resultShare = 8
	leastCut    = 96
	// leastNoteCut is the same for a note, whose command may stay whole.
	leastNoteCut = leastCut + message.MaxUncutCommand
)

// shown is what an entry takes. calls is the number of calls made together with
// the one it answers.
func (m measure) shown(e *Entry, calls int) int {
	whole := calibrate(e.Tokens, m.factor)
	if m.budget <= 0 || !e.Flags.Has(message.Cuttable) || e.Flags&(message.HasImage|message.UserText) != 0 {
		return whole
	}
	if e.Role == message.Note {
		return min(whole, max(calibrate(leastNoteCut, m.factor), m.budget/resultShare+1))
	}
	parts := resultShare
	for parts < 2*calls {
		parts *= 2
	}
	answers := max(len(e.Results), 1)
	return min(whole, max(calibrate(leastCut, m.factor)*answers, answers*(m.budget/parts+1)))
}

// group is a tool group as shown: the calls and, of each, the last result.
func (m measure) group(entries []Entry, assistant int, slots []slot) (shown, heavy int) {
	shown, heavy = m.shown(&entries[assistant], 0), weight(&entries[assistant])
	seen := map[int]bool{}
	for _, s := range slots {
		if s.result >= 0 && !seen[s.result] {
			seen[s.result] = true
			shown += m.shown(&entries[s.result], len(slots))
			heavy += weight(&entries[s.result])
		}
	}
	return shown, heavy
}

// alone adds the words of the user beside results that are not shown with their
// call: all of them where whole is false, else those that newer results took the
// place of. Nothing behind entries is shown alone.
func (m measure) alone(entries []Entry, u *unit, g *group, whole bool) {
	for _, i := range u.entries {
		if i >= len(entries) || entries[i].Role != message.Result || !isUser(&entries[i]) {
			continue
		}
		if whole && slices.ContainsFunc(g.slots, func(s slot) bool { return s.result == i }) {
			continue
		}
		u.shown += m.shown(&entries[i], 0)
		u.weight += weight(&entries[i])
	}
}

// maxWeight is about what a summarizer is shown of one message at most.
const maxWeight = 2000

func weight(e *Entry) int { return min(e.Tokens, maxWeight) }

// calibrate scales an estimate up to calibrated tokens.
func calibrate(tokens, factorMilli int) int {
	return int((int64(tokens)*int64(factorMilli) + 999) / 1000)
}

// uncalibrate is the largest estimate that calibrate keeps within tokens.
func uncalibrate(tokens, factorMilli int) int {
	return int(int64(tokens) * 1000 / int64(factorMilli))
}
