package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
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
