package engine

import (
	"cmp"

	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/compact/summarize"
)

// strategy is how a compactor compacts.
type strategy struct {
	plan       func(compact.PlanInput) (compact.Plan, compact.Stop)
	summarizer summarize.Summarizer
	// wrap has a summarizer write in the strategy's own form; nil as it is.
	wrap func(summarize.Summarizer) summarize.Summarizer
	// prepares tells that drafts made early are of use: parts of its plans keep
	// their shape while a session grows.
	prepares bool
	// rotates tells that a caller may have a successor session.
	rotates bool
}

// tree keeps a tree of summaries, with the newest branches in the window.
func tree(cfg Config) strategy {
	return strategy{plan: compact.NewPlan, summarizer: cfg.Summarizer, prepares: true}
}

// native is the host's native runtime: one structured summary and the newest
// tokens; see package compact. It compacts when it is asked to and its engines owe
// nothing, so it prepares nothing: nobody knows whether the drafts will be wanted.
func native(cfg Config) strategy {
	return strategy{
		plan: func(in compact.PlanInput) (compact.Plan, compact.Stop) {
			return compact.NewSinglePlan(in, compact.Native())
		},
		summarizer: structured(cfg.Summarizer), wrap: structured,
		rotates: true,
	}
}

func structured(inner summarize.Summarizer) summarize.Summarizer {
	return compact.Structured{Inner: inner}
}

// dress is a summarizer in the strategy's own form.
func (s strategy) dress(inner summarize.Summarizer) summarize.Summarizer {
	if s.wrap == nil {
		return inner
	}
	return s.wrap(inner)
}

// defaultRollingTurns and rollingTokens: what the rolling engine keeps verbatim,
// and what its summary may take.
const (
	defaultRollingTurns = 4
	rollingTokens       = 4000
)

// roll keeps the newest turns and one summary, retold with every compaction.
func roll(cfg Config) strategy {
	single := compact.Single{KeepTurns: cmp.Or(cfg.RollingTurns, defaultRollingTurns), MaxTokens: rollingTokens}
	return strategy{
		plan: func(in compact.PlanInput) (compact.Plan, compact.Stop) {
			return compact.NewSinglePlan(in, single)
		},
		// The chunks under the one summary keep their edges.
		summarizer: cfg.Summarizer, prepares: true,
	}
}
