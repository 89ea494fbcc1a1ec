package store

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestABrokenConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		io.ErrUnexpectedEOF, pgconn.ErrConnClosed,
		&pgconn.PgError{Code: "57P01"}, &pgconn.PgError{Code: "53300"}, &pgconn.PgError{Code: "08006"},
	} {
		if got := errUnavailable(fmt.Errorf("lane: %w", err)); !errors.Is(got, ErrUnavailable) || !errors.Is(got, err) {
			t.Errorf("%v is told as %v", err, got)
		}
	}
	if got := errUnavailable(&pgconn.PgError{Code: "23505"}); errors.Is(got, ErrUnavailable) {
		t.Errorf("bad data is told as %v", got)
	}
}
