package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
)

// EpochStep is what an epoch step appends and leaves behind.
type EpochStep struct {
	// Events end with the one that is the step (epoch.rotated and the like).
	Events []NewEvent
	State  events.State
	// LeafSeq and LeafOffset are where the active path now ends.
	LeafSeq, LeafOffset int64
	// HoldOffset: no automatic compaction before the leaf passes it.
	HoldOffset int64
	// Host is set when a host's call asked for the step; the other two say whose.
	Host                 bool
	Gateway, HostSession string
	// PaysDebt ends the session's debt and drops its drafts. Where what came
	// since the step was planned is over the threshold again, the debt stays.
	PaysDebt bool
	// Model decides by which threshold; see Config.DebtMilliOf.
	Model string
	// LeaseToken must be held, where there is one.
	LeaseToken string
	// Redo tells whether the step leaves summaries behind that are to be written
	// anew; nil says nothing of it.
	Redo *bool
}

// Stepped is the outcome of an epoch step.
type Stepped struct {
	Head, Epoch int64
	Seqs        []int64
}

// StepEpoch runs build under the session's lock, on the session as it is now,
// and commits what it answers with, if the epoch still is the planned one
// (0: whatever it is). build learns the place that its first event will get,
// which is its seq where nothing was inherited. An error of build undoes
// everything and is returned as it is.
func (s *Store) StepEpoch(
	ctx context.Context, tenant, key string, planned int64,
	build func(cur Session, state events.State, first int64) (EpochStep, error),
) (Stepped, error) {
	var out Stepped
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: tenant, SessionKey: key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		r, err := s.sessionWithState(ctx, q, tenant, key)
		if err != nil {
			return readErr("session", err)
		}
		cur := sessionOf(r.Session)
		if planned != 0 && cur.Epoch != planned {
			return &contextengine.EpochConflictError{Expected: planned, Epoch: cur.Epoch}
		}
		state, err := events.DecodeState(r.State)
		if err != nil {
			return err
		}
		step, err := build(cur, state, state.Line.Place(cur.Head+1))
		if err != nil {
			return err
		}
		out, err = s.commitStep(ctx, q, cur, step)
		return err
	})
	if err != nil {
		return Stepped{}, errUnavailable(err)
	}
	return out, nil
}

func (s *Store) commitStep(ctx context.Context, q *db.Queries, cur Session, step EpochStep) (Stepped, error) {
	it := &Item{
		Tenant: cur.Tenant, SessionKey: cur.Key, Host: step.Host,
		Gateway: step.Gateway, HostSession: step.HostSession, LeaseToken: step.LeaseToken, Events: step.Events,
	}
	it, err := s.sealTo(ctx, cur, true, it)
	if err != nil {
		return Stepped{}, err
	}
	outs, err := run(ctx, q, s.params([]*Item{it}, false))
	if err != nil {
		return Stepped{}, fmt.Errorf("append: %w", err)
	}
	a, err := outs[0].result(it)
	if err != nil {
		return Stepped{}, err
	}
	step.State.Epoch = cur.Epoch + 1
	epoch, err := q.StepEpoch(ctx, db.StepEpochParams{
		TenantID: cur.Tenant, SID: cur.SID, Epoch: cur.Epoch,
		BaseOffset: step.LeafOffset - step.State.LiveTokens(step.LeafOffset),
		HoldOffset: step.HoldOffset, FactorMilli: int32(step.State.FactorMilli),
		LeafSeq: step.LeafSeq, LeafOffset: step.LeafOffset,
	})
	if err != nil {
		return Stepped{}, fmt.Errorf("epoch step: %w", err)
	}
	body, err := events.EncodeState(step.State)
	if err != nil {
		return Stepped{}, err
	}
	if err := q.PutState(ctx, db.PutStateParams{
		TenantID: cur.Tenant, SID: cur.SID, AsOf: a.Head, Epoch: epoch, State: body,
	}); err != nil {
		return Stepped{}, fmt.Errorf("state: %w", err)
	}
	if step.PaysDebt {
		if err := s.payDebt(ctx, q, cur, step); err != nil {
			return Stepped{}, err
		}
	}
	if step.Redo != nil {
		if err := setRedo(ctx, q, cur, *step.Redo); err != nil {
			return Stepped{}, fmt.Errorf("redo: %w", err)
		}
	}
	return Stepped{Head: a.Head, Epoch: epoch, Seqs: a.Seqs}, nil
}

func setRedo(ctx context.Context, q *db.Queries, cur Session, owes bool) error {
	if owes {
		return q.OweRedo(ctx, db.OweRedoParams{TenantID: cur.Tenant, SID: cur.SID})
	}
	return q.PayRedo(ctx, db.PayRedoParams{TenantID: cur.Tenant, SID: cur.SID})
}

func (s *Store) payDebt(ctx context.Context, q *db.Queries, cur Session, step EpochStep) error {
	if s.owesMore(cur, step) {
		live := step.State.LiveTokens(step.LeafOffset)
		err := q.CarryDebt(ctx, db.CarryDebtParams{
			TenantID: cur.Tenant, SID: cur.SID, Epoch: step.State.Epoch, Tokens: live * int64(step.State.FactorMilli) / 1000,
		})
		if err != nil {
			return fmt.Errorf("debt: %w", err)
		}
		return dropDrafts(ctx, q, cur.Tenant, cur.SID)
	}
	return endDebt(ctx, q, cur.Tenant, cur.SID)
}

// owesMore reports whether a session is over the threshold behind a step, by the
// same comparison as the append's.
func (s *Store) owesMore(cur Session, step EpochStep) bool {
	budget := cmp.Or(cur.TokenBudget, s.cfg.DefaultBudget)
	cost := step.State.LiveTokens(step.LeafOffset) * int64(step.State.FactorMilli)
	return step.LeafOffset > step.HoldOffset && cost > budget*s.cfg.debtMilliOf(step.Model)
}

func endDebt(ctx context.Context, q *db.Queries, tenant string, sid uuid.UUID) error {
	if err := q.PayDebt(ctx, db.PayDebtParams{TenantID: tenant, SID: sid}); err != nil {
		return fmt.Errorf("debt: %w", err)
	}
	return dropDrafts(ctx, q, tenant, sid)
}

func dropDrafts(ctx context.Context, q *db.Queries, tenant string, sid uuid.UUID) error {
	if err := q.DropDrafts(ctx, db.DropDraftsParams{TenantID: tenant, SID: sid}); err != nil {
		return fmt.Errorf("drafts: %w", err)
	}
	return nil
}
