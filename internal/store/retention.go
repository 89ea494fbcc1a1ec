package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store/db"
)

// Retention says how long sessions are kept; 0 is for ever. A session that a
// gateway holds the lease of is in use and stays.
type Retention struct {
	// Age counts from a session's first write, Idle from its newest.
	Age, Idle time.Duration
	// Audit enters what is erased in the tenant's audit log, with it or not at all.
	Audit bool
}

// The key and the routes under which audit entries of retention stand.
const (
	retentionKey    = "retention"
	RouteExpired    = "retention"
	RouteOversize   = "retention by size"
	retentionMethod = "DELETE"
)

// Any reports whether the policy expires anything.
func (r Retention) Any() bool { return r.Age > 0 || r.Idle > 0 }

// Expired is a session that a policy has expired.
type Expired struct {
	Tenant, Key          string
	SID                  uuid.UUID
	CreatedAt, UpdatedAt time.Time
}

// RetentionCursor is a place in the walk over all sessions; the zero value is
// the beginning.
type RetentionCursor struct {
	Tenant string
	SID    uuid.UUID
}

// ExpiredAfter looks at up to limit sessions of all tenants behind a place and
// answers with the expired ones among them. more is false at the walk's end.
func (s *Store) ExpiredAfter(ctx context.Context, r Retention, at RetentionCursor, limit int) (found []Expired, next RetentionCursor, more bool, err error) {
	rows, err := s.everyone.Expired(ctx, db.ExpiredParams{
		AgeSeconds: r.Age.Seconds(), IdleSeconds: r.Idle.Seconds(), AfterTenant: at.Tenant, AfterSID: at.SID, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, at, false, readErr("sessions", err)
	}
	next = at
	for _, x := range rows {
		next = RetentionCursor{Tenant: x.TenantID, SID: x.SID}
		if x.Expired {
			found = append(found, Expired{Tenant: x.TenantID, Key: x.SessionKey, SID: x.SID, CreatedAt: x.CreatedAt, UpdatedAt: x.UpdatedAt})
		}
	}
	return found, next, len(rows) == limit, nil
}

// EraseExpired erases a session if it still is expired; ok tells whether.
func (s *Store) EraseExpired(ctx context.Context, r Retention, x Expired) (e Erasure, ok bool, err error) {
	e, err = s.bury(ctx, x.Tenant, x.Key, func(q *db.Queries, cur Session) (bool, error) {
		if cur.SID != x.SID {
			return false, nil
		}
		ok, err := q.StillExpired(ctx, db.StillExpiredParams{
			AgeSeconds: r.Age.Seconds(), IdleSeconds: r.Idle.Seconds(), TenantID: x.Tenant, SID: x.SID,
		})
		if err != nil || !ok || !r.Audit {
			return ok, err
		}
		return true, auditErasure(ctx, q, x, RouteExpired)
	})
	if errors.Is(err, errNotDue) || isUnknown(err) {
		return Erasure{}, false, nil
	}
	if err != nil {
		return Erasure{}, false, err
	}
	return s.empty(ctx, x.Tenant, e), true, nil
}

// auditErasure enters an erasure that nobody called.
func auditErasure(ctx context.Context, q *db.Queries, x Expired, route string) error {
	return q.RecordAudit(ctx, db.RecordAuditParams{
		TenantIds: []string{x.Tenant}, Ats: []time.Time{time.Now()}, KeyIds: []string{retentionKey}, RequestIds: []string{x.SID.String()},
		Methods: []string{retentionMethod}, Routes: []string{route}, SessionKeys: []string{storable(x.Key)}, Statuses: []int16{200},
	})
}

func isUnknown(err error) bool { return errors.Is(err, contextengine.ErrUnknownSession) }
