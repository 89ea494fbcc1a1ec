package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// forkTries bounds how often a fork is planned anew because an ancestor was
// erased meanwhile.
const forkTries = 5

// Fork begins a session that shows the parent's window as it was at one of the
// parent's seqs, the head where atSeq is nil. It copies nothing and inherits no
// idempotency keys; what either writes later the other does not show.
func (l *Lossless) Fork(ctx context.Context, s contextengine.Session, newKey string, atSeq *int64) (contextengine.StepResult, error) {
	none := contextengine.StepResult{}
	if err := checkSession(s); err != nil {
		return none, err
	}
	if err := checkChildKey("newSessionKey", newKey); err != nil {
		return none, err
	}
	for try := 1; ; try++ {
		v, err := l.cfg.Log.View(ctx, s.Tenant, s.SessionKey, [16]byte{}, 0, 0)
		if err != nil {
			return none, err
		}
		at := v.Head
		if atSeq != nil {
			if at = *atSeq; at < 1 || at > v.Head {
				return none, &contextengine.InvalidError{Field: "atSeq", Reason: fmt.Sprintf("a seq from 1 to the head (%d)", v.Head)}
			}
		}
		start, err := l.startAt(ctx, v, at)
		if err != nil {
			return none, err
		}
		forked, err := forkedEvent(v.Session, at, start)
		if err != nil {
			return none, err
		}
		a, err := l.cfg.Log.OpenChild(ctx, &store.NewChild{
			Tenant: s.Tenant, Key: newKey, Parent: v.SID, ParentKey: v.Key, ParentSeq: at, Kind: store.KindFork,
			Events: []store.NewEvent{forked}, Start: start,
		})
		if errors.Is(err, store.ErrLineChanged) && try < forkTries {
			continue
		}
		if err != nil {
			return none, err
		}
		return contextengine.StepResult{Head: a.Head, Epoch: a.Epoch}, nil
	}
}

func forkedEvent(parent store.Session, at int64, start *store.ChildStart) (store.NewEvent, error) {
	body, err := json.Marshal(events.ForkedBody{
		ParentSID: events.SID(parent.SID), ParentSessionKey: parent.Key, AtSeq: at, Inherited: start.State.Line.Base(),
	})
	return store.NewEvent{Type: events.Forked, Body: body}, err
}

// startAt is the state of a fork of a session as it was at a seq. What it reads
// does not grow with the history: the state of an epoch step, the newest message
// of the path, what the newest turns reported.
func (l *Lossless) startAt(ctx context.Context, v store.View, at int64) (*store.ChildStart, error) {
	start := &store.ChildStart{State: v.State, HoldOffset: v.HoldOffset, TokenBudget: v.TokenBudget, Dialect: v.Session.Dialect}
	if at < v.Head {
		var err error
		if start.State, err = l.cfg.Log.StateAsOf(ctx, v.Tenant, v.SID, at); err != nil {
			return nil, err
		}
		then := v
		then.State = start.State
		line := lineOf(l.cfg.Log, then)
		place := line.Place(at)
		budget, err := line.budget(ctx, place)
		if err != nil {
			return nil, err
		}
		start.TokenBudget = int64(budget)
		if start.Dialect, err = line.dialect(ctx, place); err != nil {
			return nil, err
		}
		if start.State.Epoch != v.Epoch {
			start.HoldOffset = 0
		}
	}
	then := v
	then.State = start.State
	leaf, err := l.newestOnPath(ctx, then, start.State.Line.Place(at))
	if err != nil {
		return nil, err
	}
	start.LeafOffset = max(leaf.Offset, start.State.FloorOffset)
	st := &start.State
	st.Line = st.Line.Extend(events.SID(v.SID), v.Key, at, start.LeafOffset)
	// A fork begins its own epochs, and has no compaction to undo.
	st.Epoch, st.Base, st.Cause = 1, 0, ""
	return start, nil
}

// withoutOpenCall takes the parent's unanswered call out of what a child starts
// with: only the parent can answer it.
func (l *Lossless) withoutOpenCall(ctx context.Context, v store.View, start *store.ChildStart) error {
	var newest []window.Entry
	line := lineOf(l.cfg.Log, v)
	upto, since := line.Place(v.Head), v.State.FirstUncovered()
	var call int64
	var kept []window.Entry
	for enough := false; !enough && upto >= since; {
		page, err := line.facts(ctx, upto, since, firstFactsPage)
		if err != nil {
			return err
		}
		var older []window.Entry
		for _, e := range slices.Backward(page) {
			if v.State.OnPath(e.Seq) {
				older = append(older, e)
			}
		}
		newest = append(older, newest...)
		if call, kept, enough = window.OpenGroup(newest); enough || len(page) < firstFactsPage {
			break
		}
		upto = page[len(page)-1].Seq - 1
	}
	if call == 0 {
		return nil
	}
	then := v
	leaf, err := l.newestOnPath(ctx, then, call-1)
	if err != nil {
		return err
	}
	st := &start.State
	st.Path = events.CutPath(st.Path, call-1, st.Line.Place(1))
	before := max(leaf.Offset, st.FloorOffset)
	own := st.Path[len(st.Path)-1]
	st.Path = st.Path[:len(st.Path)-1]
	offset := before
	for _, e := range kept {
		st.Path = append(st.Path, events.Range{From: e.Seq, To: e.Seq})
		before += int64(e.Tokens)
		offset = e.Offset
	}
	st.Path = append(st.Path, own)
	// What was taken out before the last of the kept ones costs the child nothing.
	start.LeafOffset = offset
	st.FloorOffset += offset - before
	st.Line[len(st.Line)-1].Offset = offset
	return nil
}

func checkChildKey(field, key string) error {
	err := checkSession(contextengine.Session{Tenant: "-", SessionKey: key})
	if bad, ok := errors.AsType[*contextengine.InvalidError](err); ok {
		bad.Field = field
	}
	return err
}
