package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/store/db"
)

var _ access.Usage = (*Store)(nil)

// countStep is how many events one statement counts.
const countStep = 20_000

// Override reads what a tenant's limits are beside the settings'.
func (s *Store) Override(ctx context.Context, tenant string) (access.Override, error) {
	r, err := s.of(tenant).TenantLimits(ctx, db.TenantLimitsParams{TenantID: tenant})
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Override{Tenant: tenant}, nil
	}
	if err != nil {
		return access.Override{}, fmt.Errorf("tenant: %w", errUnavailable(err))
	}
	return overrideOf(&r), nil
}

// Overrides lists the tenants whose limits differ from the settings'.
func (s *Store) Overrides(ctx context.Context) ([]access.Override, error) {
	rows, err := s.everyone.ListTenantLimits(ctx)
	if err != nil {
		return nil, fmt.Errorf("tenants: %w", errUnavailable(err))
	}
	out := make([]access.Override, len(rows))
	for i := range rows {
		out[i] = overrideOf(&rows[i])
	}
	return out, nil
}

func overrideOf(r *db.TenantLimit) access.Override {
	return access.Override{
		Tenant: r.TenantID, Rate: r.Rate, Concurrency: r.Concurrency, Sessions: r.Sessions, StorageBytes: r.StorageBytes,
		SpendMicros: r.SpendMicros, KeepBytes: r.KeepBytes,
	}
}

// SetOverride replaces a tenant's limits; without any, the settings' count.
func (s *Store) SetOverride(ctx context.Context, o access.Override) error {
	var err error
	if o == (access.Override{Tenant: o.Tenant}) {
		err = s.of(o.Tenant).DropTenantLimits(ctx, db.DropTenantLimitsParams{TenantID: o.Tenant})
	} else {
		err = s.of(o.Tenant).SetTenantLimits(ctx, db.SetTenantLimitsParams{
			TenantID: o.Tenant, Rate: o.Rate, Concurrency: o.Concurrency, Sessions: o.Sessions, StorageBytes: o.StorageBytes,
			SpendMicros: o.SpendMicros, KeepBytes: o.KeepBytes,
		})
	}
	if err != nil {
		return fmt.Errorf("tenant: %w", errUnavailable(err))
	}
	return nil
}

// CountSessions counts a tenant's sessions, no further than most.
func (s *Store) CountSessions(ctx context.Context, tenant string, most int64) (int64, error) {
	n, err := s.of(tenant).CountSessions(ctx, db.CountSessionsParams{TenantID: tenant, MaxRows: most})
	if err != nil {
		return 0, fmt.Errorf("tenant: %w", errUnavailable(err))
	}
	return n, nil
}

// CountBytes tells how many bytes the events of a tenant's sessions hold, before
// compression and without what stands beside the log. It adds what came since it was last
// asked, so its cost follows what is new.
func (s *Store) CountBytes(ctx context.Context, tenant string) (int64, error) {
	for {
		r, err := s.of(tenant).CountBytes(ctx, db.CountBytesParams{TenantID: tenant, MaxRows: countStep})
		if err != nil {
			return 0, fmt.Errorf("tenant: %w", errUnavailable(err))
		}
		if r.Came < countStep {
			return r.Bytes, nil
		}
	}
}
