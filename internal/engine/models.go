package engine

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// ModelWindow is what a model has room for, and when its sessions are compacted.
// It gives sessions a budget whose host tells none.
type ModelWindow struct {
	// Pattern is a model's name, without regard to case; * stands for any run of
	// characters but a slash. A name with a provider before a slash also matches
	// without it.
	Pattern string
	// Tokens is the model's context window, Reserve what is kept of it for the
	// answer and for what the host adds (system prompt, tools). 0 tells nothing.
	Tokens, Reserve int
	// Threshold and Soft are parts of the budget that take the places of the
	// policy's; 0 leaves them as they are.
	Threshold, Soft float64
}

// Models are what is known of models. Of each value the first entry counts that
// matches and has one.
type Models []ModelWindow

// Budget is the budget for a model: its window without the reserve; 0 for a model
// that none knows.
func (m Models) Budget(model string) int {
	for w := range m.matching(model) {
		if w.Tokens > 0 {
			return max(w.Tokens-w.Reserve, 1)
		}
	}
	return 0
}

// Policy is a policy with the model's own thresholds. A threshold below the
// policy's takes target and tail down with it, so that the gap between them
// stays in proportion; one above it leaves them where they are.
func (m Models) Policy(p compact.Policy, model string) compact.Policy {
	for w := range m.matching(model) {
		if w.Threshold > 0 {
			return p.At(w.Threshold, w.Soft)
		}
	}
	return p.WithDefaults()
}

// haveThresholds reports whether any model has a threshold of its own.
func (m Models) haveThresholds() bool {
	return slices.ContainsFunc(m, func(w ModelWindow) bool { return w.Threshold > 0 })
}

// LeastSoft is the lowest soft threshold of any model, or the policy's own.
func (m Models) LeastSoft(p compact.Policy) float64 {
	least := p.WithDefaults().SoftThreshold
	for _, w := range m {
		if w.Threshold > 0 {
			least = min(least, p.At(w.Threshold, w.Soft).SoftThreshold)
		}
	}
	return least
}

func (m Models) matching(model string) iter.Seq[ModelWindow] {
	name := strings.ToLower(model)
	_, bare, _ := strings.Cut(name, "/")
	return func(yield func(ModelWindow) bool) {
		for _, w := range m {
			pattern := strings.ToLower(w.Pattern)
			hit := slices.ContainsFunc([]string{name, bare}, func(n string) bool {
				ok, err := path.Match(pattern, n)
				return ok && err == nil
			})
			if model != "" && hit && !yield(w) {
				return
			}
		}
	}
}

// lastModel is the model that the newest turns named, "" where none of them did.
func (c Config) lastModel(ctx context.Context, v store.View) (string, error) {
	var model string
	turns := 0
	err := lineOf(c.Log, v).turnEnds(ctx, v.State.Line.Place(v.Head), func(b events.TurnCompletedBody) bool {
		model = b.Model
		turns++
		return model != "" || turns == events.ModelTurns
	})
	return model, err
}
