package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/store/db"
)

// SoftSession is a session that comes near its threshold.
type SoftSession struct {
	Tenant string
	SID    uuid.UUID
	Epoch  int64
	// Tokens is its window, calibrated.
	Tokens int64
}

// WorthPreparing are those sessions whose windows are over a share of their
// budget, in thousandths, and that owe no compaction yet.
func (s *Store) WorthPreparing(ctx context.Context, tenants []string, sids []uuid.UUID, softMilli int64) ([]SoftSession, error) {
	rows, err := s.everyone.WorthPreparing(ctx, db.WorthPreparingParams{
		TenantIds: tenants, Sids: sids, DefaultBudget: s.cfg.DefaultBudget, SoftMilli: softMilli,
	})
	if err != nil {
		return nil, readErr("sessions", err)
	}
	out := make([]SoftSession, len(rows))
	for i, r := range rows {
		out[i] = SoftSession{Tenant: r.TenantID, SID: r.SID, Epoch: r.Epoch, Tokens: r.Tokens}
	}
	return out, nil
}
