package store

import (
	"context"
	"time"

	"github.com/engined/engined/internal/store/db"
)

// SpendLimits are what summaries may cost a tenant a day (UTC), in millionths of a
// US dollar; 0 for no limit. All workers count in Postgres, so they share them.
type SpendLimits struct {
	// SummarizerMicros bounds the one summarizer.
	SummarizerMicros int64
	// TenantMicros bounds all of them together, unless the tenant has a limit of its
	// own.
	TenantMicros int64
	// Free: this summarizer has no price, so the tenant's limit does not keep it
	// from being asked.
	Free bool
}

// over says which limit is reached; "" for none.
func (l SpendLimits) over(r db.ReadGateRow) string {
	if l.SummarizerMicros > 0 && r.CostMicros >= l.SummarizerMicros {
		return "the day's spend limit is reached"
	}
	limit := orDefault(r.TenantLimit, l.TenantMicros)
	if !l.Free && limit > 0 && r.TenantMicros >= limit {
		return "the tenant's spend limit of the day is reached"
	}
	return ""
}

func orDefault(own *int64, all int64) int64 {
	if own != nil {
		return *own
	}
	return all
}

// nextDay is when spending starts over.
func nextDay(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// TenantSpend is what a tenant's summaries cost today, of all summarizers.
type TenantSpend struct {
	Tenant     string
	CostMicros int64
	// LimitMicros is 0 where there is none.
	LimitMicros int64
	// Resets is when counting starts over; zero where it was not asked for.
	Resets time.Time
}

// Over tells that summarizers with a price are not asked any more today.
func (t TenantSpend) Over() bool { return t.LimitMicros > 0 && t.CostMicros >= t.LimitMicros }

// SpentToday reads what a tenant spent. limitMicros counts where none was set for
// the tenant itself.
func (s *Store) SpentToday(ctx context.Context, tenant string, limitMicros int64) (TenantSpend, error) {
	r, err := s.of(tenant).SpentToday(ctx, db.SpentTodayParams{TenantID: tenant})
	if err != nil {
		return TenantSpend{}, readErr("spend", err)
	}
	return TenantSpend{Tenant: tenant, CostMicros: r.CostMicros, LimitMicros: orDefault(r.SpendMicros, limitMicros), Resets: nextDay(r.At)}, nil
}

// SpendersToday lists the tenants that asked for summaries today.
func (s *Store) SpendersToday(ctx context.Context, limitMicros int64) ([]TenantSpend, error) {
	rows, err := s.everyone.SpendersToday(ctx)
	if err != nil {
		return nil, readErr("spend", err)
	}
	out := make([]TenantSpend, len(rows))
	for i, r := range rows {
		out[i] = TenantSpend{Tenant: r.TenantID, CostMicros: r.CostMicros, LimitMicros: orDefault(r.SpendMicros, limitMicros)}
	}
	return out, nil
}
