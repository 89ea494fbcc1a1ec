package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

const (
	// calibrationCalls is how many of the newest model calls a calibration
	// looks at. The bodies of that many replies are read.
	calibrationCalls = 128
	// maxFactors bounds the models that a state remembers.
	maxFactors = 8
)

// factor is what estimates are multiplied by for a model, in thousandths: what
// was learned of it, else at least what is known of its family. A call that
// names no model is of the session's newest one.
func factor(state *events.State, model string) int {
	if model == "" {
		return state.FactorMilli
	}
	if f, ok := state.Factors[model]; ok {
		return f
	}
	return max(state.FactorMilli, tokens.Prior(model))
}

// calibrate is the state with the factors that the newest model calls teach.
// It changes nothing by itself: an epoch step takes it along.
func (c *Compactor) calibrate(ctx context.Context, v store.View, entries []window.Entry) (events.State, error) {
	state := v.State
	calls, err := c.reported(ctx, v, entries)
	if err != nil || len(calls) == 0 {
		return state, err
	}
	learned := tokens.Calibrate(calls)
	factors := maps.Clone(state.Factors)
	if factors == nil || len(factors)+len(learned) > maxFactors {
		factors = make(map[string]int)
	}
	maps.Copy(factors, learned)
	if len(factors) > 0 {
		state.Factors = factors
	}
	newest := calls[len(calls)-1].Model
	if f, ok := factors[newest]; ok {
		state.FactorMilli = f
	} else if len(state.Factors) == 0 {
		state.FactorMilli = max(state.FactorMilli, tokens.Prior(newest))
	}
	return state, nil
}

// reported gathers what the newest replies and the turns' ends say of the
// prompts they answer, oldest first. A reply's own usage is the nearer word.
func (c *Compactor) reported(ctx context.Context, v store.View, entries []window.Entry) ([]tokens.Reported, error) {
	var replies []window.Entry
	for i := len(entries) - 1; i >= 0 && len(replies) < calibrationCalls; i-- {
		if e := entries[i]; e.Role == message.Assistant && !e.Flags.Has(message.Hidden) {
			replies = append(replies, e)
		}
	}
	if len(replies) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(replies))
	for i := range replies {
		seqs[i] = replies[i].Seq
	}
	line := lineOf(c.cfg.Log, v)
	bodies, err := line.bodies(ctx, seqs)
	if err != nil {
		return nil, err
	}
	turns, err := line.ofType(ctx, events.TurnCompleted, seqs[len(seqs)-1], line.Place(v.Head), calibrationCalls)
	if err != nil {
		return nil, err
	}
	var out []tokens.Reported
	cut := c.cutBefore(v, entries)
	less := false
	for i := len(replies) - 1; i >= 0; i-- {
		reply := &replies[i]
		m, err := message.Read(bodies[reply.Seq])
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", reply.Seq, err)
		}
		r := tokens.Reported{Model: m.Model, Before: reply.Offset - int64(reply.Tokens), Prompt: int64(m.PromptTokens)}
		// The turn's end that follows this reply before any other speaks of it.
		for len(turns) > 0 && (i == 0 || turns[0].Seq < replies[i-1].Seq) {
			var end events.TurnCompletedBody
			if err := json.Unmarshal(turns[0].Body, &end); err != nil {
				return nil, fmt.Errorf("turn.completed %d: %w", turns[0].Seq, err)
			}
			if r.Prompt == 0 {
				r.Prompt = int64(end.PromptTokens)
			}
			if r.Model == "" {
				r.Model = end.Model
			}
			turns = turns[1:]
		}
		less = less || cut[reply.Seq]
		if r.Prompt > 0 {
			r.Less, less = less, false
			out = append(out, r)
		}
	}
	return out, nil
}

// cutBefore tells of which replies the prompts hold a result or a note, new since
// the reply before, that windows of the session's budget cut.
func (c *Compactor) cutBefore(v store.View, entries []window.Entry) map[int64]bool {
	p := window.Params{Budget: int(cmp.Or(v.TokenBudget, int64(c.cfg.DefaultBudget))), FactorMilli: v.State.FactorMilli}
	out := map[int64]bool{}
	cut, calls := false, 0
	for i := range entries {
		e := &entries[i]
		if e.Role == message.Assistant && !e.Flags.Has(message.Hidden) {
			if cut {
				out[e.Seq] = true
			}
			cut, calls = false, len(e.Calls)
			continue
		}
		cut = cut || p.Cuts(e, calls)
	}
	return out
}
