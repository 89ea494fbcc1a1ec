package compact

import "fmt"

// Policy says when to compact and how much. Shares are parts of the budget,
// between 0 and 1. The zero value of a field means its default.
type Policy struct {
	// Threshold is the fill at which a session owes a compaction, SoftThreshold
	// the fill at which drafts may be prepared in the background.
	Threshold     float64
	SoftThreshold float64
	// TargetShare is what a compaction aims for, TailShare the part of it that
	// the newest messages get verbatim; the difference is for summaries.
	TargetShare float64
	TailShare   float64
	// MinGainShare is the least that an unforced compaction must save, so that a
	// window full of protected messages is not compacted at every turn. It does
	// not hold where the compaction brings the window back into its budget.
	MinGainShare float64
	// ChunkTokens is the source of one first-level summary. It does not depend on
	// the budget: chunks cut earlier keep their edges, and so their drafts.
	ChunkTokens int
	// SummaryShare bounds a first-level summary by its source, CondenseShare a
	// higher one by its children.
	SummaryShare  float64
	CondenseShare float64
	// MinSummaryTokens and MaxSummaryTokens bound one summary as shown, its frame
	// included. The frame alone takes about 55 tokens, so the least is a few words.
	MinSummaryTokens int
	MaxSummaryTokens int
	// FanIn is how many summaries of a level make one of the next.
	FanIn int
}

// DefaultPolicy is what zero fields mean.
func DefaultPolicy() Policy {
	return Policy{
		Threshold:        0.85,
		SoftThreshold:    0.68,
		TargetShare:      0.60,
		TailShare:        0.30,
		MinGainShare:     0.05,
		ChunkTokens:      7000,
		SummaryShare:     0.25,
		CondenseShare:    0.50,
		MinSummaryTokens: 90,
		MaxSummaryTokens: 3000,
		FanIn:            5,
	}
}

// WithDefaults fills the zero fields.
func (p Policy) WithDefaults() Policy {
	d := DefaultPolicy()
	for _, f := range []struct{ v, d *float64 }{
		{&p.Threshold, &d.Threshold},
		{&p.SoftThreshold, &d.SoftThreshold},
		{&p.TargetShare, &d.TargetShare},
		{&p.TailShare, &d.TailShare},
		{&p.MinGainShare, &d.MinGainShare},
		{&p.SummaryShare, &d.SummaryShare},
		{&p.CondenseShare, &d.CondenseShare},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	for _, f := range []struct{ v, d *int }{
		{&p.ChunkTokens, &d.ChunkTokens},
		{&p.MinSummaryTokens, &d.MinSummaryTokens},
		{&p.MaxSummaryTokens, &d.MaxSummaryTokens},
		{&p.FanIn, &d.FanIn},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	return p
}

// At is the policy with other thresholds; soft 0 stands as far below threshold as
// the policy's own does. A lower threshold takes target and tail down in
// proportion.
func (p Policy) At(threshold, soft float64) Policy {
	p = p.WithDefaults()
	if soft == 0 {
		soft = threshold * p.SoftThreshold / p.Threshold
	}
	if scale := threshold / p.Threshold; scale < 1 {
		p.TargetShare *= scale
		p.TailShare *= scale
	}
	p.Threshold, p.SoftThreshold = threshold, min(soft, threshold)
	return p
}

// Fitted is the policy with target and tail that its threshold leaves room for:
// a target at or above the threshold, or the default one below a lower threshold
// than the default, becomes what it is of the default threshold. Whoever lowers the
// threshold alone need not know of the others, and compactions stay as far apart.
func (p Policy) Fitted() Policy {
	p = p.WithDefaults()
	d := DefaultPolicy()
	if p.TargetShare < p.Threshold && (p.TargetShare != d.TargetShare || p.Threshold >= d.Threshold) {
		return p
	}
	p.TargetShare = d.TargetShare / d.Threshold * p.Threshold
	p.TailShare = min(p.TailShare, d.TailShare/d.Threshold*p.Threshold)
	return p
}

// Validate says what is wrong with a policy, after WithDefaults.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name   string
		value  float64
		lo, hi float64
	}{
		{"threshold", p.Threshold, 0.1, 1},
		{"softThreshold", p.SoftThreshold, 0.05, p.Threshold},
		{"targetShare", p.TargetShare, 0.05, p.Threshold},
		{"tailShare", p.TailShare, 0.01, p.TargetShare * 0.9},
		{"minGainShare", p.MinGainShare, 0.001, 0.5},
		{"summaryShare", p.SummaryShare, 0.01, 0.5},
		{"condenseShare", p.CondenseShare, 0.1, 0.75},
		{"minSummaryTokens", float64(p.MinSummaryTokens), 16, float64(p.MaxSummaryTokens)},
		{"chunkTokens", float64(p.ChunkTokens), float64(4 * p.MinSummaryTokens), 1e6},
		{"fanIn", float64(p.FanIn), 2, 64},
	} {
		if !(f.value >= f.lo && f.value <= f.hi) {
			return fmt.Errorf("compaction policy: %s is %g, must be within %g and %g", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}

// Owes reports whether a window of so many tokens is due for compaction.
func (p Policy) Owes(tokens, budget int) bool {
	return budget > 0 && tokens > share(budget, p.WithDefaults().Threshold)
}

// MayPrepare reports whether drafts of the coming compaction are worth making.
func (p Policy) MayPrepare(tokens, budget int) bool {
	return budget > 0 && tokens > share(budget, p.WithDefaults().SoftThreshold)
}

func share(n int, s float64) int { return int(float64(n) * s) }
