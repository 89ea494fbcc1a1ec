package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable: Postgres is away or refuses connections for now. The caller
// may retry; whether a write happened is known only through its key.
var ErrUnavailable = errors.New("postgres is unavailable")

// ErrTooBusy: more appends wait than the node is willing to hold.
var ErrTooBusy = errors.New("too many appends are waiting")

// ErrLeaseStale: the write carries a lease token that is wrong or expired.
var ErrLeaseStale = errors.New("lease token is stale")

// dataError is an error of Postgres about values, in our words: its own quote
// them, and errors are logged and kept.
type dataError struct{ pg *pgconn.PgError }

func (e *dataError) Error() string {
	where := []string{"SQLSTATE " + e.pg.Code}
	for _, part := range []struct{ what, name string }{{"table", e.pg.TableName}, {"column", e.pg.ColumnName}, {"constraint", e.pg.ConstraintName}} {
		if part.name != "" {
			where = append(where, part.what+" "+part.name)
		}
	}
	return "postgres refuses a value (" + strings.Join(where, ", ") + ")"
}

func (e *dataError) Unwrap() error { return e.pg }

// lineError says an error of a connection on one line. The driver's has a line
// for each try, and tries each address with TLS and without: most lines come twice.
type lineError struct{ error }

func (e *lineError) Error() string {
	var said []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	if len(said) < 2 {
		return strings.Join(said, "")
	}
	return said[0] + " " + strings.Join(said[1:], "; ")
}

func (e *lineError) Unwrap() error { return e.error }

// errUnavailable marks errors of the connection, of a shutdown and of an
// exhausted server, says errors about values without the values, and leaves the
// others as they are.
func errUnavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = &lineError{err}
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case isAway(pg.Code):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case isDataError(err):
			return &dataError{pg}
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

// readOnly is what a server answers to a write that is a standby, or was told to
// take no writes.
const readOnly = "25006"

// isAway tells the errors that are of the server's state and not of what was
// asked: the same call may well succeed later, or at another server.
func isAway(code string) bool {
	switch code {
	case readOnly, "25P03", "25P04", // transactions that idled or lasted too long
		"55P03", // a lock that was waited for too long
		"58030": // its disk fails
		return true
	}
	switch code[:2] {
	case "08", "40", "53", "57": // connection, rollback of a deadlock, resources (a full disk), operator intervention
		return true
	}
	return false
}

// keepConnection has a connection go that leads to a server without writes. The
// next one asks anew which of the URL's hosts takes them.
func keepConnection(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	return e.Code != readOnly && e.Severity != "FATAL" && e.SeverityUnlocalized != "FATAL"
}
