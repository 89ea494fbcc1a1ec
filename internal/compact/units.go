package compact

import (
	"math"

	"github.com/engined/engined/internal/window"
)

// unit is what no cut divides, as windows know it.
type unit struct {
	window.Unit
	// weight is its part of a chunk, uncalibrated. It depends on nothing but the
	// messages, so that chunks keep their edges when budgets change.
	weight int
	// keep forbids covering it.
	keep bool
}

// uncut is a budget at which no message is cut.
const uncut = math.MaxInt

// unitsOf cuts the path into units. What windows show whatever the budget stays,
// and the newest unit does. A budget of 0 cuts nothing.
func unitsOf(entries []Entry, factorMilli, budget int) []unit {
	if budget <= 0 {
		budget = uncut
	}
	of := window.Units(window.Input{Params: window.Params{Budget: budget, FactorMilli: factorMilli}, Entries: entries})
	units := make([]unit, len(of))
	newest := -1
	for i, u := range of {
		units[i] = unit{Unit: u, keep: u.Stays}
		for _, e := range u.Shown {
			units[i].weight += weight(&entries[e])
		}
		if u.Tokens > 0 {
			newest = i
		}
	}
	if newest >= 0 {
		units[newest].keep = true
	}
	return units
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
