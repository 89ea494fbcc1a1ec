package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

// Rewriting says which old tool results maintenance replaces in windows by their
// beginning and a mark of where the whole is. Other zero fields have defaults.
type Rewriting struct {
	// On: each rewriting steps the epoch, so that the provider's cache of the
	// prefix is lost once. It is for sessions whose results outweigh that.
	On bool
	// Over is the size from which a result is replaced, in tokens; default 1000.
	Over int
	// KeepAssistants newest assistant messages are left alone with what follows
	// them (default 3), and so is the newest Policy.TailShare of the budget.
	KeepAssistants int
	// GainShare is what a rewriting has to save, as a part of the budget; default
	// 0.1. It makes rewritings rare.
	GainShare float64
}

func (r Rewriting) withDefaults() Rewriting {
	if r.Over <= 0 {
		r.Over = 1000
	}
	if r.KeepAssistants <= 0 {
		r.KeepAssistants = 3
	}
	if r.GainShare <= 0 {
		r.GainShare = 0.1
	}
	return r
}

// stubTokens is what a result is cut to, for each answer in it.
const stubTokens = 96

// shorter is the entry as windows show it.
func shorter(s *events.State, e window.Entry) window.Entry {
	if x, ok := s.Shorter(e.Seq); ok {
		e.Tokens, e.By = x.Tokens, x.By
	}
	return e
}

// shownAt is the event that holds what windows show of a message or summary.
func shownAt(s *events.State, place int64) int64 {
	if x, ok := s.Shorter(place); ok {
		return x.By
	}
	return place
}

const reasonNothingToMaintain = "nothing to maintain"

// rewrite supersedes old tool results, if that saves enough.
func (l *Lossless) rewrite(ctx context.Context, s contextengine.Session) (contextengine.MaintainResult, error) {
	none := contextengine.MaintainResult{Reason: reasonNothingToMaintain}
	v, err := l.cfg.Log.View(ctx, s.Tenant, s.SessionKey, uuid.Nil, 0, 0)
	if err != nil {
		return unknownIsFine(contextengine.MaintainResult{Reason: "unknown session"}, err)
	}
	budget := l.cfg.DefaultBudget
	if v.TokenBudget > 0 {
		budget = int(v.TokenBudget)
	}
	// It can't save more than there is: most calls end here.
	gain := int64(float64(budget) * l.cfg.Rewriting.GainShare)
	if v.LiveTokens() < gain {
		return none, nil
	}
	entries, err := l.Compactor.uncovered(ctx, v)
	if err != nil {
		return none, err
	}
	old := l.oldResults(v, entries, int64(float64(budget)*l.cfg.Policy.TailShare))
	saved := int64(0)
	for _, e := range old {
		saved += int64(e.Tokens - stubTokens*max(len(e.Results), 1))
	}
	if len(old) == 0 || saved*int64(v.State.FactorMilli)/1000 < gain {
		return none, nil
	}
	stubs, freed, err := l.stubs(ctx, v, old)
	if err != nil || len(stubs) == 0 {
		return none, err
	}
	stepped, err := l.cfg.Log.StepEpoch(ctx, v.Tenant, v.Key, v.Epoch, sameLife(v,
		func(cur store.Session, state events.State, first int64) (store.EpochStep, error) {
			return supersede(stubs, cur, state, first)
		}))
	if isEpochConflict(err) {
		return contextengine.MaintainResult{Reason: "the session went into another epoch"}, nil
	}
	if err != nil {
		return none, err
	}
	l.cfg.Notifier.EpochRotated(v.Tenant, v.SID, stepped.Head, stepped.Epoch)
	return contextengine.MaintainResult{Changed: true, BytesFreed: freed, RewrittenEntries: len(stubs)}, nil
}

// oldResults are the results that may be replaced: text alone, large, read, the
// session's own, older than the newest assistant messages and outside the tail.
func (l *Lossless) oldResults(v store.View, entries []window.Entry, tail int64) []window.Entry {
	rules := l.cfg.Rewriting
	kept, from := rules.KeepAssistants, int64(0)
	for _, e := range slices.Backward(entries) {
		if e.Role == message.Assistant && !e.Flags.Has(message.Hidden) {
			if kept--; kept == 0 {
				from = e.Seq
				break
			}
		}
	}
	var out []window.Entry
	for _, e := range entries {
		if e.Seq >= from || v.LeafOffset-e.Offset < tail*1000/int64(max(v.State.FactorMilli, 1)) {
			break
		}
		_, done := v.State.Shorter(e.Seq)
		if done || e.Role != message.Result || e.Flags&(message.HasImage|message.UserText|message.Hidden) != 0 ||
			!e.Flags.Has(message.Cuttable) || e.Seq <= v.State.Line.Base() || e.Tokens <= rules.Over*max(len(e.Results), 1) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// stub is the shorter form of a message.
type stub struct {
	place         int64
	body          []byte
	tokens, saved int
}

func (l *Lossless) stubs(ctx context.Context, v store.View, old []window.Entry) (out []stub, freed int64, err error) {
	const page = 64 // of bodies at a time
	for chunk := range slices.Chunk(old, page) {
		places := make([]int64, len(chunk))
		for i, e := range chunk {
			places[i] = e.Seq
		}
		bodies, err := lineOf(l.cfg.Log, v).bodies(ctx, places)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range chunk {
			body, ok := bodies[e.Seq]
			if !ok {
				return nil, 0, fmt.Errorf("message %d is gone", e.Seq)
			}
			short, err := message.CutResult(body, v.State.Line.Seq(e.Seq), stubTokens*max(len(e.Results), 1), tokens.Text)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d: %w", e.Seq, err)
			}
			m, err := message.Read(short)
			if err != nil {
				return nil, 0, fmt.Errorf("message %d, cut: %w", e.Seq, err)
			}
			if n := m.Facts(tokens.Message).Tokens; n < e.Tokens && len(short) < len(body) {
				out = append(out, stub{e.Seq, short, n, e.Tokens - n})
				freed += int64(len(body) - len(short))
			}
		}
	}
	return out, freed, nil
}

// supersede is one step of the epoch for all of them; first is the place of its
// first event.
func supersede(stubs []stub, cur store.Session, state events.State, first int64) (store.EpochStep, error) {
	step := store.EpochStep{LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, HoldOffset: cur.HoldOffset}
	next := state
	next.Cause = events.CauseRewrite
	added := make([]events.Superseded, 0, len(stubs))
	for i, s := range stubs {
		body, err := events.MessageSupersededBody{Seq: s.place, By: s.body, Reason: "old tool result"}.Encode()
		if err != nil {
			return step, err
		}
		step.Events = append(step.Events, store.NewEvent{Type: events.MessageSuperseded, Body: body})
		added = append(added, events.Superseded{
			Seq: s.place, By: first + int64(i), Tokens: s.tokens, Saved: s.saved,
		})
	}
	next.Superseded = events.ShownShorter(next.Path, next.Live, state.Superseded, added)
	rotated := events.EpochRotatedBody{
		Base: state.Epoch, Epoch: state.Epoch + 1, Cause: events.CauseRewrite, FactorMilli: next.FactorMilli, Live: []int64{},
	}
	for i := range next.Live {
		rotated.Live = append(rotated.Live, next.Live[i].Seq)
	}
	raw, err := json.Marshal(rotated)
	step.Events = append(step.Events, store.NewEvent{Type: events.EpochRotated, Body: raw})
	step.State = next
	return step, err
}
