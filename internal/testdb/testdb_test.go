package testdb

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	t.Parallel()
	one, other := From(t, fixture), From(t, fixture)
	execSQL(t, one, "DELETE FROM a")
	if n := count(t, one, "SELECT count(*) FROM a"); n != 0 {
		t.Errorf("after its delete one database has %d rows", n)
	}
	if n := count(t, other, "SELECT count(*) FROM a"); n != 2 {
		t.Errorf("the other database has %d rows, want the 2 of the migrations", n)
	}
}

func TestTheProjectsMigrationsApply(t *testing.T) {
	t.Parallel()
	if n := count(t, New(t), "SELECT count(*) FROM goose_db_version"); n < 2 {
		t.Errorf("goose recorded %d rows", n)
	}
}

func TestADatabaseEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("user", func(t *testing.T) {
		name = databaseOf(t, Empty(t))
	})
	if n := count(t, Empty(t), "SELECT count(*) FROM pg_database WHERE datname = $1", name); n != 0 {
		t.Errorf("%s outlived its test", name)
	}
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	_, rest, _ := strings.Cut(dsn, databasePrefix)
	name, _, _ := strings.Cut(rest, "?")
	if name == "" {
		t.Fatalf("no test database in %s", dsn)
	}
	return databasePrefix + name
}

func TestABrokenMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	s, err := newServer(t.Context(), Cluster(t).DSN("postgres"), false)
	if err != nil {
		t.Fatal(err)
	}
	broken := fstest.MapFS{"00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABEL a (n int);\n")}}
	if _, err := s.template(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "TABEL") {
		t.Errorf("template = %v, want Postgres' complaint", err)
	}
	if n := count(t, s.dsn, "SELECT count(*) FROM pg_database WHERE datname LIKE 'engined%'"); n != 0 {
		t.Errorf("%d databases are left", n)
	}
	if _, err := s.template(t.Context(), fixture); err != nil {
		t.Errorf("a good one afterwards: %v", err)
	}
	if _, err := s.template(t.Context(), fstest.MapFS{}); err == nil {
		t.Error("no migrations at all were taken for a schema")
	}
}

func TestAServerThatStays(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	old := databasePrefix + "100_old"
	fresh := fmt.Sprintf("%s%d_fresh", databasePrefix, time.Now().Unix()/3600)
	for _, name := range []string{old, fresh, databasePrefix + "strange"} {
		execSQL(t, c.DSN("postgres"), "CREATE DATABASE "+name)
	}
	if _, err := newServer(t.Context(), c.DSN("postgres"), true); err != nil {
		t.Fatal(err)
	}
	const found = "SELECT count(*) FROM pg_database WHERE datname = $1"
	for name, want := range map[string]int{old: 0, fresh: 1, databasePrefix + "strange": 1} {
		if n := count(t, c.DSN("postgres"), found, name); n != want {
			t.Errorf("%s: %d databases, want %d", name, n, want)
		}
	}

	execSQL(t, c.DSN("postgres"), "CREATE ROLE humble LOGIN")
	humble := strings.Replace(c.DSN("postgres"), "postgres@", "humble@", 1)
	if _, err := newServer(t.Context(), humble, true); err == nil || !strings.Contains(err.Error(), "CREATEDB") {
		t.Errorf("newServer for a role without CREATEDB = %v", err)
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:p@h:5432/app?sslmode=require": "postgres://u:p@h:5432/x?sslmode=require",
		"postgresql://h?dbname=app":                 "postgresql://h/x",
		"postgres://postgres@/app?host=%2Ftmp%2Fa":  "postgres://postgres@/x?host=%2Ftmp%2Fa",
		"host=/tmp user=postgres dbname=app":        "host=/tmp user=postgres dbname=app dbname=x",
	} {
		if got, err := withDatabase(dsn, "x"); err != nil || got != want {
			t.Errorf("withDatabase(%s) = %s, %v; want %s", dsn, got, err, want)
		}
	}
	if _, err := withDatabase("postgres://u:secret@h:port/app", "x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a bad URL: %v, want an error without the password", err)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(b)
	}
}
