package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store/db"
)

// Keeping says how much of a tenant is kept. Of more, the sessions that were idle
// the longest go, one after the other, until the rest fits.
type Keeping struct {
	// Bytes are those of a tenant's events as CountBytes tells them, where nothing
	// else is set for the tenant; 0 keeps all.
	Bytes int64
	// Floor is how long after its newest write a session stays in any case, and what
	// it was forked from with it.
	Floor time.Duration
	// Audit enters what is erased in the tenant's audit log.
	Audit bool
}

// Oversize is a tenant with more than is kept of it.
type Oversize struct {
	Tenant      string
	Bytes, Keep int64
}

// Oversized looks at up to limit tenants with a size, behind one ("" begins), and
// answers with those that have more. next is the last one that was looked at.
func (s *Store) Oversized(ctx context.Context, k Keeping, after string, limit int) (over []Oversize, next string, more bool, err error) {
	rows, err := s.everyone.TenantsToKeep(ctx, db.TenantsToKeepParams{AfterTenant: after, KeepBytes: k.Bytes, MaxRows: int32(limit)})
	if err != nil {
		return nil, after, false, readErr("tenants", err)
	}
	for _, r := range rows {
		after = r.TenantID
		if _, err := s.CountBytes(ctx, r.TenantID); err != nil {
			return over, after, false, err
		}
		n, err := bytesKept(ctx, s.of(r.TenantID), r.TenantID)
		if err != nil {
			return over, after, false, err
		}
		if n > r.KeepBytes {
			over = append(over, Oversize{Tenant: r.TenantID, Bytes: n, Keep: r.KeepBytes})
		}
	}
	return over, after, len(rows) == limit, nil
}

func bytesKept(ctx context.Context, q *db.Queries, tenant string) (int64, error) {
	n, err := q.BytesKept(ctx, db.BytesKeptParams{TenantID: tenant})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil // counting begins anew
	}
	if err != nil {
		return 0, fmt.Errorf("tenant: %w", errUnavailable(err))
	}
	return n, nil
}

// Idle is a session that may go, and the bytes of its events.
type Idle struct {
	Expired
	Bytes int64
}

// OldestIdle lists up to limit sessions of a tenant that may go for its size, the
// longest idle first, behind one (the zero value begins). Fewer are all there are.
func (s *Store) OldestIdle(ctx context.Context, k Keeping, tenant string, after Idle, limit int) ([]Idle, error) {
	var out []Idle
	p := db.LongestIdleParams{
		TenantID: tenant, AfterUpdated: after.UpdatedAt, AfterSID: after.SID, FloorSeconds: k.Floor.Seconds(), MaxRows: int32(limit),
	}
	for {
		rows, err := s.of(tenant).LongestIdle(ctx, p)
		if err != nil {
			return nil, readErr("sessions", err)
		}
		for _, r := range rows {
			p.AfterUpdated, p.AfterSID = r.UpdatedAt, r.SID
			if !r.May {
				continue
			}
			x := Expired{Tenant: tenant, Key: r.SessionKey, SID: r.SID, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
			if out = append(out, Idle{x, r.Bytes}); len(out) == limit {
				return out, nil
			}
		}
		if len(rows) < limit {
			return out, nil
		}
	}
}

// EraseOversize erases a session if it still may go and its tenant still has more
// than is kept; ok tells whether. Any number of workers may do so at once: the
// tenant is never brought further down than by the session that made it fit.
func (s *Store) EraseOversize(ctx context.Context, k Keeping, o Oversize, x Idle) (e Erasure, ok bool, err error) {
	e, err = s.bury(ctx, x.Tenant, x.Key, func(q *db.Queries, cur Session) (bool, error) {
		if cur.SID != x.SID {
			return false, nil
		}
		if err := q.LockKeeping(ctx, db.LockKeepingParams{TenantID: x.Tenant}); err != nil {
			return false, err
		}
		n, err := bytesKept(ctx, q, x.Tenant)
		if err != nil || n <= o.Keep {
			return false, err
		}
		may, err := q.KeepsForNobody(ctx, db.KeepsForNobodyParams{TenantID: x.Tenant, SID: x.SID, FloorSeconds: k.Floor.Seconds()})
		if err != nil || !may || !k.Audit {
			return may, err
		}
		return true, auditErasure(ctx, q, x.Expired, RouteOversize)
	})
	if errors.Is(err, errNotDue) || isUnknown(err) {
		return Erasure{}, false, nil
	}
	if err != nil {
		return Erasure{}, false, err
	}
	return s.empty(ctx, x.Tenant, e), true, nil
}
