package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// Debt is what a session owes.
type Debt struct {
	Tenant   string
	SID      uuid.UUID
	Epoch    int64
	Tokens   int64
	Budget   int64
	Attempts int
	// Failures counts the tries that failed; Attempts those that were sent.
	Failures int
	LastErr  string
}

// DueDebt takes due debts and hides them from other sweepers for a while.
func (s *Store) DueDebt(ctx context.Context, limit int, lease time.Duration) ([]Debt, error) {
	rows, err := s.everyone.DueDebt(ctx, db.DueDebtParams{LeaseSeconds: lease.Seconds(), MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("debt", err)
	}
	out := make([]Debt, len(rows))
	for i, r := range rows {
		out[i] = Debt{Tenant: r.TenantID, SID: r.SID, Epoch: r.Epoch, Attempts: int(r.Attempts)}
	}
	return out, nil
}

// DebtOf reads what one session owes; ok is false when it owes nothing.
func (s *Store) DebtOf(ctx context.Context, tenant string, sid uuid.UUID) (d Debt, ok bool, err error) {
	r, err := s.of(tenant).DebtOf(ctx, db.DebtOfParams{TenantID: tenant, SID: sid})
	if errors.Is(err, pgx.ErrNoRows) {
		return Debt{}, false, nil
	}
	if err != nil {
		return Debt{}, false, readErr("debt", err)
	}
	return Debt{
		Tenant: r.TenantID, SID: r.SID, Epoch: r.Epoch, Tokens: r.Tokens, Budget: r.Budget,
		Attempts: int(r.Attempts), Failures: int(r.Failures), LastErr: deref(r.LastError),
	}, true, nil
}

// PostponeDebt counts a failed try, puts the next one off and notes why.
func (s *Store) PostponeDebt(ctx context.Context, tenant string, sid uuid.UUID, delay time.Duration, why string) error {
	err := s.of(tenant).PostponeDebt(ctx, db.PostponeDebtParams{
		TenantID: tenant, SID: sid, DelaySeconds: delay.Seconds(), LastError: &why,
	})
	if err != nil {
		return fmt.Errorf("debt: %w", errUnavailable(err))
	}
	return nil
}

// ForgiveDebt ends a debt whatever it has become meanwhile.
func (s *Store) ForgiveDebt(ctx context.Context, tenant string, sid uuid.UUID) error {
	return errUnavailable(endDebt(ctx, s.of(tenant), tenant, sid))
}

// OwedCompactions counts debts and tells the age of the oldest.
func (s *Store) OwedCompactions(ctx context.Context) (owed int64, oldest time.Duration, err error) {
	r, err := s.everyone.CountDebt(ctx)
	if err != nil {
		return 0, 0, readErr("debt", err)
	}
	return r.Owed, time.Duration(r.OldestSeconds * float64(time.Second)), nil
}

// SettleDebt ends a debt that was looked at and found to be of no use, unless
// turns have added to it since d was read: those were told that a compaction
// follows.
func (s *Store) SettleDebt(ctx context.Context, d Debt) error {
	err := s.of(d.Tenant).SettleDebt(ctx, db.SettleDebtParams{TenantID: d.Tenant, SID: d.SID, Tokens: d.Tokens})
	if err != nil {
		return fmt.Errorf("debt: %w", errUnavailable(err))
	}
	return errUnavailable(dropDrafts(ctx, s.of(d.Tenant), d.Tenant, d.SID))
}

// Attempt is one finished try at a compaction.
type Attempt struct {
	Tenant    string
	SID       uuid.UUID
	Epoch     int64
	Worker    string
	Outcome   string
	Err       string
	StartedAt time.Time
	EndedAt   time.Time
}

// RecordAttempt notes a finished try, dead letters included.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) error {
	p := db.RecordAttemptParams{
		TenantID: a.Tenant, SID: a.SID, Epoch: a.Epoch, Worker: a.Worker, Outcome: a.Outcome, StartedAt: a.StartedAt,
	}
	if a.Err != "" {
		p.Error = &a.Err
	}
	if err := s.of(a.Tenant).RecordAttempt(ctx, p); err != nil {
		return fmt.Errorf("attempt: %w", errUnavailable(err))
	}
	return nil
}

// Attempts reads the newest tries of a session.
func (s *Store) Attempts(ctx context.Context, tenant string, sid uuid.UUID, limit int) ([]Attempt, error) {
	rows, err := s.of(tenant).ListAttempts(ctx, db.ListAttemptsParams{TenantID: tenant, SID: sid, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("attempts", err)
	}
	out := make([]Attempt, len(rows))
	for i, r := range rows {
		out[i] = Attempt{
			Tenant: r.TenantID, SID: r.SID, Epoch: r.Epoch, Worker: r.Worker, Outcome: r.Outcome, Err: deref(r.Error),
			StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		}
	}
	return out, nil
}

// Draft reads a finished summary that was not committed yet. One that cannot be
// read is none: it is written again.
func (s *Store) Draft(ctx context.Context, tenant string, sid uuid.UUID, key []byte) (draft []byte, ok bool, err error) {
	open := s.opener(tenant, sid)
	if key, err = open.name(ctx, key); err != nil {
		return nil, false, err
	}
	b, err := s.of(tenant).GetDraft(ctx, db.GetDraftParams{TenantID: tenant, SID: sid, Key: key})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, readErr("draft", err)
	}
	b, err = open.bytes(ctx, vault.Draft, key, b)
	if unreadable(err) {
		s.log.Warn("a draft is unreadable; it is written again", "sid", sid, "error", err)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return b, true, nil
}

// PutDraft keeps a finished summary. It leaves nothing behind for a session
// that is gone.
func (s *Store) PutDraft(ctx context.Context, tenant string, sid uuid.UUID, key, draft []byte) error {
	open := s.opener(tenant, sid)
	key, err := open.name(ctx, key)
	if errors.Is(err, vault.ErrKeyGone) {
		return nil // an erasure destroyed it
	}
	if err != nil {
		return err
	}
	if draft, err = open.seal(ctx, vault.Draft, key, draft); err != nil {
		return err
	}
	err = s.of(tenant).PutDraft(ctx, db.PutDraftParams{
		TenantID: tenant, SID: sid, Key: key, Draft: draft, Sealed: vault.IsSealed(draft),
	})
	if err != nil {
		return fmt.Errorf("draft: %w", errUnavailable(err))
	}
	return nil
}

// CompactionCount is how many compactions the session had since its last reset.
func (s *Store) CompactionCount(ctx context.Context, tenant string, sid uuid.UUID) (int64, error) {
	k, err := s.opener(tenant, sid).perhaps(ctx)
	if err != nil {
		return 0, err
	}
	if k != nil {
		return s.countSealed(ctx, tenant, sid)
	}
	n, err := s.of(tenant).CountCompactions(ctx, db.CountCompactionsParams{TenantID: tenant, SID: sid})
	if err != nil {
		return 0, readErr("compactions", err)
	}
	return n, nil
}

// countSealed is CompactionCount where SQL can't read the events.
func (s *Store) countSealed(ctx context.Context, tenant string, sid uuid.UUID) (n int64, err error) {
	after, _, err := s.NewestOfType(ctx, tenant, sid, events.SessionReset, math.MaxInt64)
	if err != nil {
		return 0, err
	}
	const page = 500
	for {
		rows, err := s.EventsOfType(ctx, tenant, sid, events.EpochRotated, after, math.MaxInt64, page)
		if err != nil {
			return 0, err
		}
		for i := range rows {
			var b struct {
				Cause events.Cause `json:"cause"`
			}
			if err := json.Unmarshal(rows[i].Body, &b); err != nil {
				return 0, fmt.Errorf("event %d: %w", rows[i].Seq, err)
			}
			if b.Cause == events.CauseCompaction {
				n++
			}
			after = rows[i].Seq
		}
		if len(rows) < page {
			return n, nil
		}
	}
}
