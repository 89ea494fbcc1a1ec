package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/testdb"
)

func TestFeedOfAnotherClusterIsClosedUntilItIsFixed(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	key := strings.TrimSpace(engined(t, "keys", "create", "--tenant", "t", "--scope", "admin", "--database-url", db).ok(t).out)
	serve := func() *running {
		t.Helper()
		return serveIn(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	}
	n := serve()
	feed := func(n *running, cursor string) (status int, next, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+"/v1/feed?after="+cursor, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var page struct{ Cursor string }
		_ = json.Unmarshal(raw, &page) // a problem has no cursor
		return res.StatusCode, page.Cursor, string(raw)
	}
	write := func(n *running) {
		t.Helper()
		if _, err := clientOf(t, n.url, key).IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
			t.Fatal(err)
		}
	}
	write(n)
	// Other tests' transactions in this cluster hold the newest events back.
	await := func(cursor string, rows int) string {
		t.Helper()
		for {
			status, next, body := feed(n, cursor)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			if strings.Count(body, `"seq":`) >= rows {
				return next
			}
		}
	}
	old := await("", 2)

	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `UPDATE feed_eras SET cluster = '1'`); err != nil {
		t.Fatal(err)
	}
	n = serve() // one that starts after the restore
	write(n)
	if status, _, body := feed(n, old); status != http.StatusServiceUnavailable || !strings.Contains(body, "feed-closed") || !strings.Contains(body, "doctor --fix") {
		t.Errorf("a closed feed: %d %s", status, body)
	}
	if got := engined(t, "doctor", "--database-url", db, "--nats-url", "nats://127.0.0.1:1"); got.code != exitFailure || !strings.Contains(got.out, "✗ feed") || !strings.Contains(got.out, "fix: engined doctor --fix") {
		t.Errorf("doctor: %+v", got)
	}
	fixed := engined(t, "doctor", "--fix", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	if !strings.Contains(fixed.err, "era 2 is open") || !strings.Contains(fixed.out, "✓ feed") {
		t.Errorf("doctor --fix: %+v", fixed)
	}
	if again := engined(t, "doctor", "--fix", "--database-url", db, "--nats-url", "nats://127.0.0.1:1"); strings.Contains(again.err, "is open") {
		t.Errorf("it opened another one: %+v", again)
	}
	n = serve()
	if status, _, body := feed(n, old); status != http.StatusGone || !strings.Contains(body, "feed-era") || !strings.Contains(body, "start again without a cursor") {
		t.Errorf("an old cursor: %d %s", status, body)
	}
	cursor := await("", 4)
	write(n)
	await(cursor, 2)
	if got := engined(t, "doctor", "--new-era", "--database-url", db); got.code != exitUsage {
		t.Errorf("--new-era alone: %+v", got)
	}
}
