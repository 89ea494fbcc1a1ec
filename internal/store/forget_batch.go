package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

const (
	// heirBatch is how many heirs forget in one transaction. It bounds how long
	// writers of any of them wait and how many locks are held at once; the server
	// has room for some thousands of all sessions.
	heirBatch = 64
	// fewStates: an heir with more recorded states forgets alone.
	fewStates = 8
)

// forgetBatch has those of a page of heirs forget an ancestor that need no more
// than an epoch step, in a handful of statements. left are the others: busy ones,
// and those with summaries, debts or a long history of their own.
func (s *Store) forgetBatch(ctx context.Context, tenant string, ancestor uuid.UUID, heirs []db.HeirsToForgetRow) (left []db.HeirsToForgetRow, err error) {
	if len(heirs) == 0 {
		return nil, nil
	}
	err = s.within(ctx, tenant, func(q *db.Queries) error {
		left = nil
		keys := make([]string, 0, len(heirs))
		for _, h := range heirs {
			if h.SessionKey != "" {
				keys = append(keys, h.SessionKey)
			}
		}
		held, err := q.TryLockSessions(ctx, db.TryLockSessionsParams{TenantID: tenant, SessionKeys: keys})
		if err != nil {
			return fmt.Errorf("locks: %w", err)
		}
		ours := make(map[string]bool, len(held))
		for _, k := range held {
			ours[k] = true
		}
		var sids []uuid.UUID
		for _, h := range heirs {
			if ours[h.SessionKey] {
				sids = append(sids, h.SID)
			} else {
				left = append(left, h)
			}
		}
		rows, err := q.Heirs(ctx, db.HeirsParams{TenantID: tenant, Sids: sids, FewStates: fewStates})
		if err != nil {
			return fmt.Errorf("heirs: %w", err)
		}
		b := batch{store: s, ancestor: ancestor}
		for i := range rows {
			if ok, err := b.take(ctx, &rows[i]); err != nil {
				return err
			} else if !ok {
				left = append(left, db.HeirsToForgetRow{SID: rows[i].Session.SID, SessionKey: rows[i].Session.SessionKey})
			}
		}
		return b.write(ctx, q, tenant)
	})
	return left, errUnavailable(err)
}

// batch gathers what heirs become.
type batch struct {
	store    *Store
	ancestor uuid.UUID
	items    []*Item
	steps    db.StepEpochsParams
	states   db.ReplaceStatesParams
	newest   []events.State
	done     []uuid.UUID
	// used is when each was written to before.
	used []time.Time
}

// take plans for one heir what dropAncestor does; false where that takes more.
func (b *batch) take(ctx context.Context, r *db.HeirsRow) (bool, error) {
	cur := sessionOf(r.Session)
	if r.Summarized || r.StateCount != int64(len(r.States)) || r.Owed != 1 || len(r.States) == 0 {
		return false, nil
	}
	var newest events.State
	rewritten := make([][]byte, len(r.States))
	for i, raw := range r.States {
		st, err := events.DecodeState(raw)
		if err != nil {
			return false, nil //nolint:nilerr // alone it says so
		}
		next, inherits := st.WithoutAncestor(events.SID(b.ancestor))
		if !inherits {
			return false, nil
		}
		if rewritten[i], err = events.EncodeState(next); err != nil {
			return false, err
		}
		newest = next
	}
	newest.Epoch, newest.Cause = cur.Epoch+1, events.CauseAncestor
	body, err := json.Marshal(events.AncestorErasedBody{SID: events.SID(b.ancestor), Through: newest.Line[0].To})
	if err != nil {
		return false, err
	}
	if b.store.owesMore(cur, EpochStep{State: newest, LeafOffset: cur.LeafOffset, HoldOffset: cur.HoldOffset}) {
		return false, nil
	}
	it := &Item{Tenant: cur.Tenant, SessionKey: cur.Key, Events: []NewEvent{{Type: events.AncestorErased, Body: body}}}
	if it, err = b.store.sealTo(ctx, cur, true, it); unreadable(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for i := range rewritten {
		b.state(cur.SID, r.AsOf[i], r.Epochs[i], rewritten[i])
	}
	b.items = append(b.items, it)
	b.newest = append(b.newest, newest)
	b.done = append(b.done, cur.SID)
	b.used = append(b.used, cur.UpdatedAt)
	b.steps.Sids = append(b.steps.Sids, cur.SID)
	b.steps.Epochs = append(b.steps.Epochs, cur.Epoch)
	b.steps.Bases = append(b.steps.Bases, cur.LeafOffset-newest.LiveTokens(cur.LeafOffset))
	return true, nil
}

func (b *batch) state(sid uuid.UUID, asOf, epoch int64, raw []byte) {
	b.states.Sids = append(b.states.Sids, sid)
	b.states.AsOf = append(b.states.AsOf, asOf)
	b.states.Epochs = append(b.states.Epochs, epoch)
	b.states.States = append(b.states.States, raw)
}

func (b *batch) write(ctx context.Context, q *db.Queries, tenant string) error {
	if len(b.done) == 0 {
		return nil
	}
	outs, err := run(ctx, q, b.store.params(b.items, false))
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	for i := range outs {
		a, err := outs[i].result(b.items[i])
		if err != nil {
			return fmt.Errorf("append to %s: %w", b.done[i], err)
		}
		raw, err := events.EncodeState(b.newest[i])
		if err != nil {
			return err
		}
		b.state(b.done[i], a.Head, b.newest[i].Epoch, raw)
	}
	b.steps.TenantID, b.states.TenantID = tenant, tenant
	n, err := q.StepEpochs(ctx, b.steps)
	if err == nil && n != int64(len(b.done)) {
		err = fmt.Errorf("%d of %d", n, len(b.done))
	}
	if err != nil {
		return fmt.Errorf("epoch steps: %w", err)
	}
	if err := q.StayIdle(ctx, db.StayIdleParams{TenantID: tenant, Sids: b.done, Ats: b.used}); err != nil {
		return fmt.Errorf("idleness: %w", err)
	}
	if err := q.ReplaceStates(ctx, b.states); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	if err := q.PayDebts(ctx, db.PayDebtsParams{TenantID: tenant, Sids: b.done}); err != nil {
		return fmt.Errorf("debts: %w", err)
	}
	if err := q.DropDraftsOf(ctx, db.DropDraftsOfParams{TenantID: tenant, Sids: b.done}); err != nil {
		return fmt.Errorf("drafts: %w", err)
	}
	if err := b.store.disguiseParent(ctx, q, tenant, b.ancestor, b.done); err != nil {
		return err
	}
	return q.Forgot(ctx, db.ForgotParams{TenantID: tenant, Ancestor: b.ancestor, Sids: b.done})
}
