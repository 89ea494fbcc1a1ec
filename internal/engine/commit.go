package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// commit appends the summaries and the step, if the epoch still is the planned
// one. Messages that arrived meanwhile stay in the tail.
func (c *Compactor) commit(ctx context.Context, j *job, target *contextengine.SessionTarget, out compact.Outcome) (contextengine.CompactResult, error) {
	v := j.view
	var live []int64
	stepped, err := c.cfg.Log.StepEpoch(ctx, v.Tenant, v.Key, j.plan.Epoch, sameLife(v,
		func(cur store.Session, state events.State, firstSeq int64) (store.EpochStep, error) {
			step, seqs, err := c.step(j, out, cur, state, firstSeq)
			live, step.LeaseToken, step.Model = seqs, j.lease, j.model
			return step, err
		}))
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	c.cfg.Notifier.EpochRotated(v.Tenant, v.SID, stepped.Head, stepped.Epoch)
	made := stepped.Seqs[:len(out.Summaries)]
	for i := range made {
		made[i] = v.State.Line.Place(made[i])
	}
	details, err := json.Marshal(struct {
		Summaries    []int64 `json:"summaries"`
		Live         []int64 `json:"live"`
		DraftsReused int     `json:"draftsReused"`
		Calls        int     `json:"calls"`
		// HookError is what became of the hook before it, where that failed.
		HookError string `json:"hookError,omitempty"`
	}{made, live, out.Reused, out.Calls, j.told.failure()})
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	result := &contextengine.CompactionOutcome{
		Summary:          out.Summaries[len(out.Summaries)-1].Text,
		FirstKeptEntryID: entryID(ctx, c.cfg.Log, v, j.plan.FirstKept),
		TokensBefore:     out.TokensBefore, TokensAfter: out.TokensAfter, Details: details,
	}
	if j.successor != "" {
		result.SessionID = j.successor
		if target != nil {
			next := *target // the same agent, key and store
			next.SessionID = j.successor
			result.SessionTarget = &next
		}
	}
	return contextengine.CompactResult{OK: true, Compacted: true, Epoch: stepped.Epoch, Result: result}, nil
}

// step builds the events of the commit and the state after it.
func (c *Compactor) step(j *job, out compact.Outcome, cur store.Session, state events.State, firstSeq int64) (store.EpochStep, []int64, error) {
	seqOf := func(step int) int64 {
		for i := range out.Summaries {
			if out.Summaries[i].Step == step {
				return firstSeq + int64(i)
			}
		}
		return 0
	}
	known := make(map[int64]events.LiveSummary)
	for _, l := range state.Live {
		known[l.Seq] = l
	}
	step := store.EpochStep{
		LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, HoldOffset: cur.HoldOffset, PaysDebt: j.again == nil,
	}
	for i, body := range out.Bodies(seqOf) {
		seq := firstSeq + int64(i)
		body.CoveredTokens = j.covered(body.Sources)
		for _, child := range body.Children {
			body.CoveredTokens += known[child].CoveredTokens
		}
		if was, ok := j.again[out.Summaries[i].Step]; ok {
			body.CoveredTokens = was.CoveredTokens
		}
		known[seq] = events.LiveSummary{
			Seq: seq, Level: body.Level, Tokens: body.Tokens, Covers: body.Covers,
			CoveredTokens: body.CoveredTokens, Timestamp: body.Timestamp,
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return store.EpochStep{}, nil, err
		}
		step.Events = append(step.Events, store.NewEvent{Type: events.SummaryCreated, Body: raw})
	}
	live := out.LiveSeqs(seqOf)
	next := state
	next.FactorMilli, next.Factors = j.state.FactorMilli, j.state.Factors
	next.Live = make([]events.LiveSummary, len(live))
	for i, seq := range live {
		next.Live[i] = known[seq]
	}
	next.Superseded = events.ShownShorter(next.Path, next.Live, state.Superseded)
	next.Cause, next.Base = events.CauseCompaction, state.Epoch
	next.ForcedAt = 0
	if j.forced {
		next.ForcedAt = firstSeq + int64(len(step.Events))
		if j.successor != "" {
			next.ForcedAt++
		}
	}
	if owes := out.Degraded(); owes || j.again != nil {
		step.Redo = &owes
	}
	raw, err := json.Marshal(events.EpochRotatedBody{
		Base: state.Epoch, Epoch: state.Epoch + 1, Cause: events.CauseCompaction, Live: live,
		FactorMilli: next.FactorMilli, TokensBefore: out.TokensBefore, TokensAfter: out.TokensAfter,
	})
	if err != nil {
		return store.EpochStep{}, nil, err
	}
	if j.successor != "" {
		bound, err := json.Marshal(events.HostSessionBody{Gateway: cur.Gateway, HostSessionID: j.successor})
		if err != nil {
			return store.EpochStep{}, nil, err
		}
		step.Events = append(step.Events, store.NewEvent{Type: events.HostSessionBound, Body: bound})
	}
	step.Events = append(step.Events, store.NewEvent{Type: events.EpochRotated, Body: raw})
	step.State = next
	return step, live, nil
}

// covered is the raw estimate of the uncovered messages within the ranges.
func (j *job) covered(ranges []events.Range) int64 {
	var n int64
	for _, r := range ranges {
		at, _ := slices.BinarySearchFunc(j.entries, r.From, func(e window.Entry, seq int64) int { return int(e.Seq - seq) })
		for ; at < len(j.entries) && j.entries[at].Seq <= r.To; at++ {
			n += int64(j.entries[at].Tokens)
		}
	}
	return n
}
