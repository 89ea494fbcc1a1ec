package testdb

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// envHelper makes the test binary a test process of another package: it joins
// the shared cluster, says what it sees, and is killed.
const envHelper = "TESTDB_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(envHelper) != "" {
		seen, err := look()
		if err != nil {
			seen = "error: " + err.Error()
		}
		fmt.Println(seen)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	goleak.VerifyTestMain(m)
}

// look returns what must be the same for all users of one cluster: its data
// directory and the identity of a template.
func look() (string, error) {
	ctx := context.Background()
	s, err := connected()
	if err != nil {
		return "", err
	}
	template, err := s.template(ctx, fixture)
	if err != nil {
		return "", err
	}
	var seen string
	err = s.admin(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_postmaster_start_time() || ' ' || oid FROM pg_database WHERE datname = $1`,
			template).Scan(&seen)
	})
	return seen, err
}

var fixture = fstest.MapFS{
	"00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (n int);\n")},
	"00002_b.sql": {Data: []byte("-- +goose Up\nINSERT INTO a VALUES (1), (2);\n")},
}

func count(t *testing.T, dsn, sql string, args ...any) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func execSQL(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
