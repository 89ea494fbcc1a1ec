package tokens

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Calibration bounds. A factor never lowers an estimate: reasoning that a
// provider drops from later prompts makes prompts grow by less than the log,
// which says nothing of how the rest is counted.
const (
	minFactor = 1000
	maxFactor = 2500
	// step is the grain of a factor; it is rounded up.
	factorStep = 10
	// minGrowth is the least estimated growth between two prompts that tells
	// anything: below it rounding and framing weigh more than text.
	minGrowth = 200
	// minPairs and minTokens are how much must have been seen of a model.
	minPairs  = 4
	minTokens = 2000
	// oddRatio is a growth that text does not explain: a system prompt or tools
	// came or went, or the host cut its history.
	oddRatio = 3
)

// claudeFactor is the factor of models of the Claude family before anything is
// reported: on ten recorded sessions (claude-sonnet-4, sonnet-4-5, opus-4-5) a
// prompt grew by 1.13 to 1.48 times the estimate, 1.27 in the middle.
const claudeFactor = 1300

// Prior is the factor for a model that has reported nothing, in thousandths.
// The vocabulary is OpenAI's, so theirs is 1000, and so is that of unknown
// models.
func Prior(model string) int {
	if strings.Contains(strings.ToLower(model), "claude") {
		return claudeFactor
	}
	return minFactor
}

// Reported is what a host told of one model call.
type Reported struct {
	Model string
	// Before is the estimate of all messages that the prompt can have held: the
	// running total along the path, before the reply.
	Before int64
	// Prompt is the size of the prompt as the provider counted it, with all that
	// the host adds: its system prompt, its tools.
	Prompt int64
	// Less tells that the prompt may hold less than Before counts of what was said
	// since the call before: a window cuts large results.
	Less bool
}

// Calibrate compares how prompts grew with how the estimate did, call by call,
// and answers a factor for each model that was seen enough, in thousandths.
// What hosts add to each prompt cancels out in the growth. Calls are given in
// the order in which they were made.
//
// The factor is one that three quarters of the estimated tokens stay within:
// an estimate is rather a little too high than too low. A prompt that shrank
// began a new window and tells nothing, nor does a growth of which the prompt may
// hold less than the estimate; one of exactly the size before is the same call
// again, told by another of its parts.
func Calibrate(calls []Reported) map[string]int {
	type growth struct {
		ratio     float64
		estimated int64
	}
	seen := make(map[string][]growth)
	var last Reported
	for _, call := range calls {
		if call.Model == last.Model && call.Prompt == last.Prompt {
			continue
		}
		a, b := last, call
		last = call
		estimated, prompt := b.Before-a.Before, b.Prompt-a.Prompt
		if a.Prompt == 0 || a.Model != b.Model || b.Less || estimated < minGrowth || prompt <= 0 {
			continue
		}
		if r := float64(prompt) / float64(estimated); r < oddRatio {
			seen[b.Model] = append(seen[b.Model], growth{r, estimated})
		}
	}
	out := make(map[string]int)
	for model, gs := range seen {
		var total int64
		for _, g := range gs {
			total += g.estimated
		}
		if len(gs) < minPairs || total < minTokens {
			continue
		}
		slices.SortFunc(gs, func(a, b growth) int { return cmp.Compare(a.ratio, b.ratio) })
		var below int64
		for _, g := range gs {
			if below += g.estimated; below*4 >= total*3 {
				out[model] = factorOf(g.ratio)
				break
			}
		}
	}
	return out
}

func factorOf(ratio float64) int {
	// A ratio a hair above a step is that step: it comes from a division.
	f := int(math.Ceil(ratio*1000/factorStep-1e-6)) * factorStep
	return min(max(f, minFactor), maxFactor)
}
