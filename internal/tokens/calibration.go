package tokens

// A calibration factor is in thousandths: 1000 means that the model counts as
// the estimate does. It is never lower, so that an estimate is never under the
// o200k_base count, and at most 4000.
const (
	FactorMin = 1000
	FactorMax = 4000
)

// fewTokens: from smaller prompts nothing is learned, since what a host adds
// around the history (its system prompt, its tools) outweighs the history.
const fewTokens = 1000

// Apply scales an estimate by a factor in thousandths, rounding up. A factor
// under FactorMin (0 for none yet) counts as FactorMin.
func Apply(tokens, factorMilli int) int {
	f := clamp(factorMilli)
	return (tokens*f + 999) / 1000
}

// Calibrate learns the next factor from what a provider reported for a prompt
// and what was estimated, without a factor, for the same prompt. It rises to
// what the report says at once and falls half the way: an estimate too low
// costs a failed call, one too high a little room. previous is the factor in
// force (0 for none yet); it stays where a report says nothing (either count 0
// or less, or an estimate under 1,000 tokens).
func Calibrate(reported, estimated, previous int) int {
	previous = clamp(previous)
	if reported <= 0 || estimated < fewTokens {
		return previous
	}
	const most = 1 << 40 // no prompt has more, and the product must not overflow
	factor := clamp((min(reported, most)*1000 + estimated - 1) / estimated)
	if factor < previous {
		return (factor + previous + 1) / 2
	}
	return factor
}

func clamp(factor int) int { return min(max(factor, FactorMin), FactorMax) }
