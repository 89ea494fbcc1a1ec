package erasure_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestNobodyReadsWhatAForkHasYetToForget breaks an erasure off right behind its
// tombstone: no fork has forgotten anything yet, and no call shows it.
func TestNobodyReadsWhatAForkHasYetToForget(t *testing.T) {
	t.Parallel()
	s := start(t, quoting{})
	must := func(a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	const parent = "named after a person"
	must(s.post(parent, "ingest-batch", object{"messages": messages(12, markers["small"])}))
	calls := map[string]func(fork string) answer{
		"assemble": func(f string) answer {
			return ask(t, s.node, http.MethodPost, path(f)+"/assemble", object{"tokenBudget": 100_000})
		},
		"assemble on a node that had it cached": func(f string) answer {
			return ask(t, s.other, http.MethodPost, path(f)+"/assemble", object{"tokenBudget": 100_000})
		},
		"assemble as of a seq": func(f string) answer {
			return ask(t, s.node, http.MethodPost, path(f)+"/assemble", object{"tokenBudget": 100_000, "asOfSeq": 2})
		},
		"events":    func(f string) answer { return ask(t, s.node, http.MethodGet, path(f)+"/events", nil) },
		"summaries": func(f string) answer { return ask(t, s.node, http.MethodGet, path(f)+"/summaries", nil) },
		"session":   func(f string) answer { return ask(t, s.node, http.MethodGet, path(f), nil) },
		"feed":      func(string) answer { return ask(t, s.node, http.MethodGet, "/v1/feed?limit=500", nil) },
		"search":    func(string) answer { return ask(t, s.node, http.MethodGet, "/v1/search?q="+markers["small"], nil) },
		"scan": func(string) answer {
			return ask(t, s.node, http.MethodGet, "/v1/search?regex=true&q="+markers["small"], nil)
		},
		"fork": func(f string) answer {
			must(s.post(f, "fork", object{"newSessionKey": f + " again"}))
			return ask(t, s.node, http.MethodPost, path(f+" again")+"/assemble", object{"tokenBudget": 100_000})
		},
		"compact": func(f string) answer { return s.post(f, "compact", object{"force": true, "tokenBudget": 2000}) },
	}
	for name := range calls {
		fork := "fork for " + name
		must(s.post(parent, "fork", object{"newSessionKey": fork}))
		must(s.post(fork, "ingest-batch", object{"messages": messages(6, "the fork's own")}))
		must(s.post(fork, "compact", object{"force": true, "tokenBudget": 3000}))
		must(s.post(fork, "ingest", object{"message": object{"role": "user", "content": "since then"}}))
		must(calls["assemble on a node that had it cached"](fork))
	}
	s.await("the search index", func() bool {
		var found struct{ Hits []struct{ Kind string } }
		ask(t, s.node, http.MethodGet, "/v1/search?kind=summary&limit=100&q="+markers["small"], nil).into(t, &found)
		return len(found.Hits) >= len(calls)
	})
	s.breakOff(parent)
	var left int
	conn, err := pgx.Connect(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM forgetting`).Scan(&left); err != nil || left != len(calls) {
		t.Fatalf("%d forks have yet to forget, %v: the test proves nothing", left, err)
	}
	// What looks at all sessions comes first: the others have theirs forget.
	for _, name := range []string{
		"search", "scan", "feed", "assemble", "assemble on a node that had it cached", "assemble as of a seq", "events", "summaries", "session", "fork", "compact",
	} {
		a := calls[name]("fork for " + name)
		must(a)
		if text := string(a.body); strings.Contains(text, markers["small"]) || strings.Contains(text, parent) {
			t.Errorf("%s shows what is erased: %.2000s", name, text)
		}
	}
}

// breakOff erases a session and breaks off behind the tombstone.
func (s *service) breakOff(key string) {
	t := s.t
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE bodies IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.store.Erase(ctx, tenant, key)
		done <- err
	}()
	s.await("the erasure to wait", func() bool {
		var n int
		const q = `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`
		if err := conn.QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
