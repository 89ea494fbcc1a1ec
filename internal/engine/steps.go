package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// stepTries bounds how often a step is planned anew because the epoch moved.
const stepTries = 100

// Reset hides everything before keepFrom, or everything.
func (l *Lossless) Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, reason string) (contextengine.StepResult, error) {
	return l.step(ctx, s, func(v store.View) (stepper, error) {
		line := v.State.Line
		first := line.Place(v.Head + 1) // nothing before it is shown
		var floor int64
		if keepFrom != nil {
			if *keepFrom < 1 || *keepFrom > v.Head {
				return nil, &contextengine.InvalidError{Field: "keepFromSeq", Reason: fmt.Sprintf("a seq from 1 to the head (%d)", v.Head)}
			}
			first = line.Place(*keepFrom)
			kept, err := l.newestOnPath(ctx, v, first-1)
			if err != nil {
				return nil, err
			}
			floor = kept.Offset
		}
		return func(cur store.Session, state events.State, seq int64) (store.EpochStep, error) {
			step := store.EpochStep{
				LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, PaysDebt: true,
				Host: true, Gateway: s.GatewayID, HostSession: s.SessionID,
			}
			body := events.SessionResetBody{Reason: reason, HostSessionID: s.SessionID}
			next := state
			next.Live, next.Base, next.ForcedAt, next.Cause = nil, 0, 0, events.CauseReset
			if keepFrom == nil {
				step.LeafSeq = 0
				next.Path, next.FloorOffset = []events.Range{{From: seq + 1, To: events.Open}}, cur.LeafOffset
			} else {
				body.KeepFrom = *keepFrom
				next.Path, next.FloorOffset = dropBefore(state.Path, first), max(floor, state.FloorOffset)
				next.Live = events.KeepOnPath(state.Live, next.Path)
			}
			next.Superseded = events.ShownShorter(next.Path, next.Live, state.Superseded)
			raw, err := json.Marshal(body)
			step.Events = []store.NewEvent{{Type: events.SessionReset, Body: raw}}
			step.State = next
			return step, err
		}, nil
	})
}

// Rewind moves the active leaf to the newest message at or before a seq. A seq
// on an abandoned branch brings that branch back.
func (l *Lossless) Rewind(ctx context.Context, s contextengine.Session, toSeq int64) (contextengine.StepResult, error) {
	return l.step(ctx, s, func(v store.View) (stepper, error) {
		if toSeq < 1 || toSeq > v.Head {
			return nil, &contextengine.InvalidError{Field: "toSeq", Reason: fmt.Sprintf("a seq from 1 to the head (%d)", v.Head)}
		}
		leaf, own, err := l.newestMessage(ctx, v, toSeq)
		if err != nil {
			return nil, err
		}
		older, err := l.cfg.Log.StateAsOf(ctx, v.Tenant, v.SID, own)
		if err != nil {
			return nil, err
		}
		branch, floor := v.State.Path, v.State.FloorOffset
		switch {
		case leaf.Seq == 0 || v.State.OnPath(leaf.Seq):
		case older.OnPath(leaf.Seq): // what a reset had hid then stays hidden
			branch, floor = older.Path, older.FloorOffset
		default: // stored beside the path of its time
			if branch, floor, err = l.branchOf(ctx, v, own); err != nil {
				return nil, err
			}
		}
		return func(_ store.Session, state events.State, seq int64) (store.EpochStep, error) {
			next := state
			next.Path, next.FloorOffset = events.CutPath(branch, leaf.Seq, seq+1), floor
			next.Live = events.MostCovering(events.KeepOnPath(state.Live, next.Path), events.KeepOnPath(older.Live, next.Path))
			next.Superseded = events.ShownShorter(next.Path, next.Live, older.Superseded, state.Superseded)
			next.Base, next.ForcedAt, next.Cause = 0, 0, events.CauseRewind
			raw, err := json.Marshal(events.LeafMovedBody{To: own, Reason: "rewind"})
			return store.EpochStep{
				Events: []store.NewEvent{{Type: events.LeafMoved, Body: raw}}, State: next,
				LeafSeq: own, LeafOffset: max(leaf.Offset, floor), Host: true, PaysDebt: true,
			}, err
		}, nil
	})
}

// UndoCompaction brings back the summaries that stood before the newest
// compaction (or before the one that began the given epoch, and so before those
// behind it), with what came since. Automatic
// compaction then waits until the session has grown by a quarter of its budget.
func (l *Lossless) UndoCompaction(ctx context.Context, s contextengine.Session, epoch *int64) (contextengine.StepResult, error) {
	return l.step(ctx, s, func(v store.View) (stepper, error) {
		if v.State.Base == 0 {
			return nil, contextengine.ErrNothingToUndo
		}
		base, err := l.baseOf(ctx, v, epoch)
		if err != nil {
			return nil, err
		}
		return func(cur store.Session, state events.State, _ int64) (store.EpochStep, error) {
			next := state
			next.Live = events.KeepOnPath(base.Live, state.Path)
			next.Superseded = events.ShownShorter(next.Path, next.Live, base.Superseded, state.Superseded)
			next.Base, next.Cause = base.Base, events.CauseUndo
			next.ForcedAt = 0
			body := events.EpochRotatedBody{
				Base: base.Epoch, Epoch: state.Epoch + 1, Cause: events.CauseUndo, FactorMilli: next.FactorMilli, Live: []int64{},
			}
			for _, x := range next.Live {
				body.Live = append(body.Live, x.Seq)
			}
			for _, x := range state.Live {
				if !slices.Contains(body.Live, x.Seq) {
					body.Retired = append(body.Retired, x.Seq)
				}
			}
			budget := cur.TokenBudget
			if budget == 0 {
				budget = int64(l.cfg.DefaultBudget)
			}
			raw, err := json.Marshal(body)
			return store.EpochStep{
				Events: []store.NewEvent{{Type: events.EpochRotated, Body: raw}}, State: next,
				LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, HoldOffset: cur.LeafOffset + budget/4,
				Host: true, PaysDebt: true,
			}, err
		}, nil
	})
}

// baseOf is the state from before a compaction that is still in force: it is
// among those on which the present one stands, one on the other.
func (l *Lossless) baseOf(ctx context.Context, v store.View, epoch *int64) (base events.State, err error) {
	wanted := v.State.Base
	if epoch != nil {
		begun := v.State
		if *epoch != begun.Epoch {
			if begun, err = l.cfg.Log.StateOfEpoch(ctx, v.Tenant, v.SID, *epoch); err != nil {
				return base, err
			}
		}
		wanted = begun.Base
		if begun.Epoch != *epoch || wanted == 0 {
			return base, contextengine.ErrNothingToUndo
		}
	}
	for base = v.State; base.Base > 0; {
		if base, err = l.cfg.Log.StateOfEpoch(ctx, v.Tenant, v.SID, base.Base); err != nil || base.Epoch == wanted {
			return base, err
		}
	}
	return base, contextengine.ErrNothingToUndo
}

type stepper func(cur store.Session, state events.State, firstSeq int64) (store.EpochStep, error)

// step plans an epoch step on the session as it is and commits it in that
// epoch; when the epoch moved meanwhile it plans again.
func (l *Lossless) step(ctx context.Context, s contextengine.Session, plan func(store.View) (stepper, error)) (contextengine.StepResult, error) {
	if err := checkSession(s); err != nil {
		return contextengine.StepResult{}, err
	}
	for try := 1; ; try++ {
		v, err := l.cfg.Log.View(ctx, s.Tenant, s.SessionKey, [16]byte{}, 0, 0)
		if err := l.notErased(ctx, s, err); err != nil {
			return contextengine.StepResult{}, err
		}
		build, err := plan(v)
		if err != nil {
			return contextengine.StepResult{}, err
		}
		model := ""
		if l.cfg.Models.haveThresholds() {
			if model, err = l.cfg.lastModel(ctx, v); err != nil {
				return contextengine.StepResult{}, err
			}
		}
		out, err := l.cfg.Log.StepEpoch(ctx, s.Tenant, s.SessionKey, v.Epoch, sameLife(v, ofModel(model, underLease(s.LeaseToken, build))))
		if isEpochConflict(err) && try < stepTries {
			continue
		}
		if err != nil {
			return contextengine.StepResult{}, err
		}
		l.cfg.Notifier.EpochRotated(v.Tenant, v.SID, out.Head, out.Epoch)
		return contextengine.StepResult{Head: out.Head, Epoch: out.Epoch}, nil
	}
}

func dropBefore(path []events.Range, from int64) []events.Range {
	var out []events.Range
	for _, r := range path {
		if r.To >= from {
			out = append(out, events.Range{From: max(r.From, from), To: r.To})
		}
	}
	return out
}
