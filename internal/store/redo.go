package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/store/db"
)

// Redo is a session with summaries that are to be written anew.
type Redo struct {
	Tenant   string
	SID      uuid.UUID
	Attempts int
}

// DueRedo takes due sessions and hides them from other workers for a while.
func (s *Store) DueRedo(ctx context.Context, limit int, lease time.Duration) ([]Redo, error) {
	rows, err := s.everyone.DueRedo(ctx, db.DueRedoParams{LeaseSeconds: lease.Seconds(), MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("redo", err)
	}
	out := make([]Redo, len(rows))
	for i, r := range rows {
		out[i] = Redo{Tenant: r.TenantID, SID: r.SID, Attempts: int(r.Attempts)}
	}
	return out, nil
}

// PostponeRedo puts the next try off and notes why.
func (s *Store) PostponeRedo(ctx context.Context, tenant string, sid uuid.UUID, delay time.Duration, why string) error {
	err := s.of(tenant).PostponeRedo(ctx, db.PostponeRedoParams{TenantID: tenant, SID: sid, DelaySeconds: delay.Seconds(), LastError: &why})
	if err != nil {
		return fmt.Errorf("redo: %w", errUnavailable(err))
	}
	return nil
}

// PayRedo ends it: nothing of the session is to be written anew.
func (s *Store) PayRedo(ctx context.Context, tenant string, sid uuid.UUID) error {
	if err := s.of(tenant).PayRedo(ctx, db.PayRedoParams{TenantID: tenant, SID: sid}); err != nil {
		return fmt.Errorf("redo: %w", errUnavailable(err))
	}
	return nil
}

// OwedRedos counts the sessions with such summaries.
func (s *Store) OwedRedos(ctx context.Context) (int64, error) {
	n, err := s.everyone.CountRedo(ctx)
	if err != nil {
		return 0, readErr("redo", err)
	}
	return n, nil
}
