package store

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable: Postgres is away or refuses connections for now. The caller
// may retry; whether a write happened is known only through its key.
var ErrUnavailable = errors.New("postgres is unavailable")

// ErrTooBusy: more appends wait than the node is willing to hold.
var ErrTooBusy = errors.New("too many appends are waiting")

// ErrLeaseStale: the write carries a lease token that is wrong or expired.
var ErrLeaseStale = errors.New("lease token is stale")

// errUnavailable marks errors of the connection, of a shutdown and of an
// exhausted server, and leaves the others as they are.
func errUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:2] {
		case "08", "53", "57": // connection, resources, operator intervention
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || isBroken(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
