package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
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

// TestErrorsAboutValuesDoNotQuoteThem, wherever they were wrapped before.
func TestErrorsAboutValuesDoNotQuoteThem(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"22021", "22P02", "23505", "23514"} {
		pg := &pgconn.PgError{Code: code, Message: `invalid input syntax: "marker"`, Detail: "Key (k)=(marker)", ConstraintName: "event_keys_pkey"}
		got := errUnavailable(fmt.Errorf("append: %w", pg))
		if text := got.Error(); strings.Contains(text, "marker") || !strings.Contains(text, code) || !strings.Contains(text, "event_keys_pkey") {
			t.Errorf("%s is told as %q", code, text)
		}
		if !isDataError(got) || errors.Is(got, ErrUnavailable) {
			t.Errorf("%s lost its kind", code)
		}
	}
}

func TestAServerThatTakesNoWritesIsAway(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"25006", "53100", "58030", "40P01", "55P03", "25P03"} {
		if got := errUnavailable(&pgconn.PgError{Code: code}); !errors.Is(got, ErrUnavailable) {
			t.Errorf("%s is told as %v", code, got)
		}
	}
	for _, code := range []string{"25001", "42501", "42P01", "P0001"} {
		if got := errUnavailable(&pgconn.PgError{Code: code}); errors.Is(got, ErrUnavailable) {
			t.Errorf("%s is told as %v", code, got)
		}
	}
}

// TestAnErrorOfAConnectionIsOneLine: with sslmode=prefer, the default, the driver
// tries each address twice and says both.
func TestAnErrorOfAConnectionIsOneLine(t *testing.T) {
	t.Parallel()
	_, err := pgconn.Connect(t.Context(), "postgres://u@127.0.0.1:1/d?sslmode=prefer")
	if err == nil || strings.Count(err.Error(), "refused") != 2 {
		t.Fatalf("the driver says %v", err)
	}
	got := errUnavailable(fmt.Errorf("schema: %w", err))
	if text := got.Error(); strings.Count(text, "refused") != 1 || strings.Contains(text, "\n") || !strings.Contains(text, "schema: failed to connect to `user=u database=d`: 127.0.0.1:1") {
		t.Errorf("%q", text)
	}
	if !errors.Is(got, ErrUnavailable) || !errors.Is(got, syscall.ECONNREFUSED) {
		t.Errorf("it is not what it was: %v", got)
	}
}
