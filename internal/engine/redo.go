package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// ErrStillDegraded: no model would write what a rule had written.
var ErrStillDegraded = errors.New("no model wrote the summaries anew")

// Redo writes anew what a rule wrote in a model's place, if a model does now. It
// answers false where nothing was to be done; an error has changed nothing.
func (c *Compactor) Redo(ctx context.Context, s store.Session) (bool, error) {
	done, err := c.flight.enter(ctx, s.SID)
	if err != nil {
		return false, err
	}
	defer done()
	v, err := c.cfg.Log.View(ctx, s.Tenant, s.Key, uuid.Nil, 0, 0)
	if err != nil {
		return false, err
	}
	if v.SID != s.SID {
		return false, contextengine.ErrUnknownSession
	}
	in := compact.RedoInput{
		Epoch: v.Epoch, FactorMilli: v.State.FactorMilli, Summaries: map[int64]compact.Written{},
		TokensBefore: int(v.State.LiveTokens(v.LeafOffset) * int64(v.State.FactorMilli) / 1000),
	}
	for _, l := range v.State.Live {
		in.Live = append(in.Live, l.Seq)
	}
	bodies, err := c.degraded(ctx, v, in)
	if err != nil {
		return false, err
	}
	j := &job{view: v, state: v.State, again: map[int]events.SummaryBody{}}
	var stop compact.Stop
	if j.plan, stop = compact.NewRedo(in); stop != "" {
		return false, nil
	}
	for _, step := range j.plan.Steps {
		j.again[step.ID] = bodies[step.Replaces]
	}
	out, err := compact.Run(ctx, c.runInput(v, j.plan, "", false))
	if err != nil {
		return false, fmt.Errorf("redo: %w", err)
	}
	if out.Degraded() {
		return false, ErrStillDegraded
	}
	_, err = c.commit(ctx, j, nil, out)
	return err == nil, err
}

// degraded reads the live summaries and, level by level, the degraded ones under
// them.
func (c *Compactor) degraded(ctx context.Context, v store.View, in compact.RedoInput) (map[int64]events.SummaryBody, error) {
	bodies := map[int64]events.SummaryBody{}
	for next := in.Live; len(next) > 0; {
		raw, err := lineOf(c.cfg.Log, v).bodies(ctx, next)
		if err != nil {
			return nil, err
		}
		var under []int64
		for _, seq := range next {
			var b events.SummaryBody
			if err := json.Unmarshal(raw[seq], &b); err != nil {
				return nil, fmt.Errorf("summary %d: %w", seq, err)
			}
			bodies[seq] = b
			in.Summaries[seq] = compact.Written{
				Seq: seq, Level: b.Level, Tokens: int64(b.Tokens), SourceTokens: int64(b.SourceTokens),
				Sources: b.Sources, Children: b.Children, Covers: b.Covers, Degraded: b.Degraded,
			}
			if b.Degraded {
				under = append(under, b.Children...)
			}
		}
		next = under
	}
	return bodies, nil
}
