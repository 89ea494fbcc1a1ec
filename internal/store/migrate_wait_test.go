package store_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/migrations"
)

// A long transaction may hold what a migration needs. The migration waits; given
// up meanwhile it has changed nothing, and the next start makes the schema.
func TestAMigrationWaitsForALongTransaction(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `CREATE TABLE sessions (n int)`); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	migrate := func(ctx context.Context) {
		_, err := store.Migrate(ctx, url, nil)
		done <- err
	}
	go migrate(ctx)
	waitForLock(t, url)
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	var tables int
	if err := queryRow(t, url, `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = 'events'`, &tables); err != nil || tables != 0 {
		t.Errorf("%d tables of a half schema, %v", tables, err)
	}
	go migrate(t.Context())
	waitForLock(t, url)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustAppend(t, openURL(t, url), item("k", msg("a", 1)))
}

// earlier is a database as a release of that schema left it, with a session.
func earlier(t testing.TB, last string) string {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		body, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if name[:len(last)] <= last {
			files[name] = &fstest.MapFile{Data: body}
		}
	}
	url := testdb.From(t, files)
	exec(t, url, `INSERT INTO sessions (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset)
		VALUES ($1, gen_random_uuid(), 'old', 0, 0, 1, 0, 0)`, tenant)
	return url
}

// A backup holds its locks on all tables as long as it takes. A migration that
// queued behind it would have every reader and writer queue behind itself.
func TestAMigrationThatWaitsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	url := earlier(t, "00021")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	backup, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Exec(t.Context(), `LOCK TABLE sessions, events, tombstones IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	reader, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		_, err := store.Migrate(t.Context(), url, nil)
		done <- err
	}()
	for range 3 {
		waitForLock(t, url)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		n := 0
		err := reader.QueryRow(ctx, `SELECT count(*) FROM sessions`).Scan(&n)
		cancel()
		if err != nil || n != 1 {
			t.Fatalf("a reader behind the migration: %d, %v", n, err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait for the backup: %v", err)
	default:
	}
	if err := backup.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustAppend(t, openURL(t, url), item("old", msg("a", 1)))
}
