package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
)

// In its first epoch a session's factor is its model's prior: nothing was learned
// yet. If the model counts more than that, the window is over the model's real
// limit before the estimate is over the threshold. So where the prompts that are
// reported come near the threshold, a turn's end asks what they teach, and the
// debt goes by that; the compaction then takes the factor along.
const (
	// gaugeFrom is the part of the threshold from which a prompt is near it: no model
	// that was seen counts more than 1/gaugeFrom times the estimate.
	gaugeFrom = 0.6
	// gaugeAgain is by which part of the budget a prompt grows until the next look.
	gaugeAgain = 0.05
)

// gauges remember what the prompts of sessions in their first epoch taught.
type gauges struct {
	mu   sync.Mutex
	seen map[cacheKey]gauge
}

type gauge struct {
	prompt int64
	factor int
}

func (g *gauges) get(key cacheKey) (gauge, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v, ok := g.seen[key]
	return v, ok
}

func (g *gauges) put(key cacheKey, v gauge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil || len(g.seen) >= mostKnown {
		g.seen = make(map[cacheKey]gauge)
	}
	g.seen[key] = v
}

// promptOf is the newest prompt that a turn tells of, 0 for none.
func promptOf(reported int, messages []json.RawMessage) int64 {
	if reported > 0 {
		return int64(reported)
	}
	for _, raw := range slices.Backward(messages) {
		if m, err := message.Read(raw); err == nil && m.Role == message.Assistant && m.PromptTokens > 0 {
			return int64(m.PromptTokens)
		}
	}
	return 0
}

// gauged is the factor that the item's debt goes by in a session's first epoch; 0
// where its own counts.
func (w *writer) gauged(ctx context.Context, it *store.Item, prompt int64) (int, error) {
	budget := it.Budget
	if budget == 0 {
		budget = int64(w.cfg.DefaultBudget)
	}
	near := gaugeFrom * w.cfg.Models.Policy(w.cfg.Policy, it.Model).Threshold * float64(budget)
	if float64(prompt) < near || w.learned.has(it.Tenant, it.SessionKey) {
		return 0, nil
	}
	key := cacheKey{it.Tenant, it.SessionKey}
	was, ok := w.gauges.get(key)
	if ok && float64(prompt-was.prompt) < gaugeAgain*float64(budget) {
		return was.factor, nil
	}
	v, err := w.cfg.Log.View(ctx, it.Tenant, it.SessionKey, uuid.Nil, 0, 0)
	switch {
	case errors.Is(err, contextengine.ErrUnknownSession):
		return 0, nil
	case err != nil:
		return 0, err
	case v.State.Epoch > 1:
		w.learned.put(it.Tenant, it.SessionKey)
		return 0, nil
	}
	c := &Compactor{cfg: w.cfg}
	entries, err := c.uncovered(ctx, v)
	if err != nil {
		return 0, err
	}
	state, err := c.calibrate(ctx, v, entries)
	if err != nil {
		return 0, err
	}
	f := factor(&state, it.Model)
	if f <= tokens.Prior("") {
		f = 0
	}
	w.gauges.put(key, gauge{prompt, f})
	return f, nil
}
