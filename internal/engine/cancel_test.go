package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
)

// TestAWindowThatNobodyWaitsForIsNotRead: a call that is cancelled while Postgres
// works for it ends at once, there too, and leaves nothing.
func TestAWindowThatNobodyWaitsForIsNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.ingest("k", talk(0, 3)...).Head
	conn, err := pgx.Connect(t.Context(), b.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE sessions, events IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		t.Helper()
		const q = `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database() AND NOT l.granted`
		if err := tx.QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	budget := 10_000
	done := make(chan error, 1)
	go func() {
		_, err := b.Assemble(ctx, contextengine.AssembleParams{Session: on("k"), TokenBudget: &budget})
		done <- err
	}()
	for waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for until := time.Now().Add(10 * time.Second); waiting() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d queries still wait in Postgres", waiting())
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := b.window("k", budget); w.Head != head {
		t.Errorf("head %d, was %d", w.Head, head)
	}
}
