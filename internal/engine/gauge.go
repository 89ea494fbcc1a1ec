package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

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
	// gaugeAgain is by which part of the budget a prompt changes until the next look.
	gaugeAgain = 0.05
)

type gaugeKey struct {
	cacheKey
	model string
}

// gauge is what the prompts of a session in its first epoch taught of a model.
type gauge struct {
	sid    uuid.UUID
	prompt int64
	factor int
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
// where nothing is learned, or not more than the least.
func (w *writer) gauged(ctx context.Context, it *store.Item, known scale, prompt int64) (int, error) {
	key := gaugeKey{cacheKey{it.Tenant, it.SessionKey}, it.Model}
	was, ok := w.gauges.get(key)
	ok = ok && was.sid == known.sid
	if ok && prompt == 0 {
		return was.factor, nil
	}
	budget := float64(cmp.Or(known.budget, int64(w.cfg.DefaultBudget)))
	if float64(prompt) < gaugeFrom*w.cfg.Models.Policy(w.cfg.Policy, it.Model).Threshold*budget {
		return 0, nil
	}
	// Also from a prompt that shrank: a single report that is too large would else
	// be the last that was looked at.
	if ok && math.Abs(float64(prompt-was.prompt)) < gaugeAgain*budget {
		return was.factor, nil
	}
	v, err := w.cfg.Log.View(ctx, it.Tenant, it.SessionKey, uuid.Nil, 0, 0)
	switch {
	case errors.Is(err, contextengine.ErrUnknownSession):
		return 0, nil
	case err != nil:
		return 0, err
	case v.State.Epoch > 1: // the append will hear of it
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
	w.gauges.put(key, gauge{known.sid, prompt, f})
	return f, nil
}
