package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store/db"
)

// verdictHeld is take_lease's own; the others are append_events'.
const verdictHeld = 9

// LeaseRequest asks for a session's lease. The session is opened where it is
// missing.
type LeaseRequest struct {
	Tenant, SessionKey   string
	Gateway, HostSession string
	Owner                string
	// TTL counts from the moment Postgres gives the lease, by its clock.
	TTL time.Duration
}

// Lease is a session's lease. Token is a fencing token: 16 decimal digits,
// higher with every change of hands, as a text and as a number.
type Lease struct {
	Token     string
	ExpiresAt time.Time
	// Renewed is set when the owner held it already; the token is the same.
	Renewed     bool
	Head, Epoch int64
}

// LeaseHeldError: another owner holds the lease.
type LeaseHeldError struct {
	ExpiresAt time.Time
	// Left is how long it lasts unless it is renewed, by Postgres' clock.
	Left time.Duration
}

func (e *LeaseHeldError) Error() string {
	return "another owner holds the lease until " + e.ExpiresAt.UTC().Format(time.RFC3339Nano)
}

// TakeLease gives or renews a lease, or answers with a *LeaseHeldError.
func (s *Store) TakeLease(ctx context.Context, r LeaseRequest) (Lease, error) {
	sid, err := uuid.NewV7()
	if err != nil {
		return Lease{}, fmt.Errorf("lease: %w", err)
	}
	row, err := s.of(r.Tenant).TakeLease(ctx, db.TakeLeaseParams{
		TenantID: r.Tenant, SessionKey: r.SessionKey, NewSID: sid, Gateway: r.Gateway, HostSession: r.HostSession,
		Owner: r.Owner, TtlMs: r.TTL.Milliseconds(),
	})
	if err != nil {
		return Lease{}, fmt.Errorf("lease: %w", errUnavailable(err))
	}
	switch row.Verdict {
	case verdictErased:
		return Lease{}, contextengine.ErrSessionErased
	case verdictHeld:
		return Lease{}, &LeaseHeldError{ExpiresAt: row.ExpiresAt, Left: time.Duration(row.LeftMs) * time.Millisecond}
	}
	return Lease{Token: row.Token, ExpiresAt: row.ExpiresAt, Renewed: row.Renewed, Head: row.Head, Epoch: row.Epoch}, nil
}

// EndLease gives a lease back. A token that is wrong or expired answers
// ErrLeaseStale.
func (s *Store) EndLease(ctx context.Context, tenant, key, token string) error {
	n, err := s.of(tenant).EndLease(ctx, db.EndLeaseParams{TenantID: tenant, SessionKey: key, Token: token})
	if err != nil {
		return fmt.Errorf("lease: %w", errUnavailable(err))
	}
	if n > 0 {
		return nil
	}
	if _, err := s.Session(ctx, tenant, key); err != nil {
		return err
	}
	return ErrLeaseStale
}

// HoldsLease answers ErrLeaseStale for a token that is wrong or expired. It is for
// calls that write to other sessions than the lease's; what writes to its own
// holds the token against the lease in the transaction that writes.
func (s *Store) HoldsLease(ctx context.Context, tenant, key, token string) error {
	held, err := s.of(tenant).HoldsLease(ctx, db.HoldsLeaseParams{TenantID: tenant, SessionKey: key, Token: token})
	if err != nil {
		return fmt.Errorf("lease: %w", errUnavailable(err))
	}
	if held {
		return nil
	}
	if _, err := s.Session(ctx, tenant, key); err != nil {
		return err
	}
	return ErrLeaseStale
}
