package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/testdb"
)

// withPassword is a DSN whose password the server does not ask for.
func withPassword(t *testing.T, dsn, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}

// TestLogsTellNoSecrets runs a node and a worker at the most talkative level
// through good calls, refusals, faults and compactions, and searches all that
// they said.
func TestLogsTellNoSecrets(t *testing.T) {
	t.Parallel()
	const password, static, content, query = "hunter2pass", "statictoken77", "zebracontent", "zebraquery"
	plain := testdb.Empty(t)
	db, nats := withPassword(t, plain, password), bustest.StartTCP(t).URL()
	loud := []string{"--log-level", "debug", "--log-format", "json", "--database-url", db, "--nats-url", nats}
	n := serveIn(t, noEnv, append([]string{"serve", "--worker", "--listen", "127.0.0.1:0", "--keys", static + "=acme", "--max-message-bytes", "4KiB"}, loud...)...)
	key := strings.TrimSpace(engined(t, "keys", "create", "--tenant", "acme", "--scope", "gateway", "--database-url", db).ok(t).out)

	call := func(method, path, token, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	message := func(extra string) string {
		return `{"message":{"role":"user","content":"` + content + strings.Repeat(" "+content, 40) + `"}` + extra + `}`
	}
	wrong := key[:len(key)-6] + "aaaaaa"
	for _, token := range []string{key, static} {
		for _, c := range []struct {
			method, path, body string
			want               int
		}{
			{"POST", "/v1/sessions/s/ingest", message(""), 200},
			{"POST", "/v1/sessions/s/ingest", message(`,"idempotencyKey":"` + content + `"`), 200},
			{"POST", "/v1/sessions/s/ingest", `{"message":{"` + content + `"}}`, 400},
			{"POST", "/v1/sessions/s/ingest", `{"message":"` + content + "\xff" + `"}`, 400},
			{"POST", "/v1/sessions/s/ingest", message(`,"expectedHead":99`), 412},
			{"POST", "/v1/sessions/s/ingest", `{"message":{"content":"` + strings.Repeat(content, 1000) + `"}}`, 413},
			{"POST", "/v1/sessions/s/assemble", `{"tokenBudget":4000,"prompt":"` + content + `"}`, 200},
			{"POST", "/v1/sessions/s/compact", `{"tokenBudget":1000,"force":true}`, 200},
			{"GET", "/v1/sessions/s/events?q=" + query, "", 200},
			{"GET", "/v1/sessions/s/events?after=" + content, "", 422},
			{"GET", "/" + query, "", 404},
			{"GET", "/v1/sessions/" + content + "/events", "", 404},
		} {
			if got := call(c.method, c.path, token, c.body); got != c.want {
				t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
			}
		}
	}
	if got := call("POST", "/v1/sessions/s/ingest", wrong, message("")); got != 401 {
		t.Errorf("a wrong key: %d", got)
	}

	// Faults: every connection to Postgres ends, again and again, under load.
	cutConnections(t, plain, func() {
		for range 8 {
			call("POST", "/v1/sessions/s/ingest", key, message(""))
			call("POST", "/v1/sessions/s/after-turn", key, `{"messages":[],"prePromptMessageCount":0,"tokenBudget":500}`)
			call("GET", "/v1/sessions", key, "")
		}
	})
	n.end(t)
	said := n.out.String() + n.err.String()
	if !strings.Contains(said, `"status":412`) || !strings.Contains(said, `"level":"DEBUG"`) {
		t.Fatalf("the logs tell too little for this test:\n%s", said)
	}

	// Starts that fail, and commands that do.
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--database-url", "postgres://u:" + password + "@127.0.0.1:1/x?connect_timeout=1", "--no-migrate", "--shutdown-grace", "1s"},
		{"migrate", "up", "--database-url", "postgres://u:" + password + "@127.0.0.1:1/x"},
		{"migrate", "up", "--database-url", "postgres://u:" + password + "@127.0.0.1:notaport/x"},
		{"migrate", "up", "--database-url", "host=/nowhere password=" + password + " port=x"},
		{"migrate", "up", "--database-url", withPassword(t, plain, password) + "&sslmode=odd"},
		{"keys", "list", "--database-url", "postgres://u:" + password + "@127.0.0.1:1/x"},
		{"doctor", "--database-url", "postgres://u:" + password + "@127.0.0.1:1/x", "--nats-url", "nats://u:" + password + "@127.0.0.1:1"},
		{"doctor", "--database-url", plain, "--nats-url", "nats://u:" + password + "@127.0.0.1:notaport"},
		{"sessions", "--url", "http://127.0.0.1:1", "--key", static},
		{"config", "--database-url", "postgres://u:" + password + "@h/x", "--keys", static + "=acme"},
		{"serve", "--keys", static, "--database-url", plain},
		{"serve", "--keys", static + "=acme=god", "--database-url", plain},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		got := engined(t, args...)
		cancel(nil)
		_ = ctx
		said += got.out + got.err
	}
	for name, secret := range map[string]string{
		"a password": password, "a key of the settings": static, "a key": key[16:], "a wrong key": wrong[16:], "a message": content, "a query": query,
	} {
		if at := strings.Index(said, secret); at >= 0 {
			t.Errorf("%s is told: …%s…", name, said[max(0, at-300):min(len(said), at+100)])
		}
	}
}

// cutConnections ends a database's connections from the server's side for as
// long as do runs.
func cutConnections(t *testing.T, dsn string, do func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	done := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var n int
			err := conn.QueryRow(context.Background(),
				"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n)
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	do()
	close(done)
	cutting.Wait()
}

func TestKeysOfAListAreValidJSON(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	var list struct{ Keys []json.RawMessage }
	if err := json.Unmarshal([]byte(engined(t, "keys", "list", "--json", "--database-url", db).ok(t).out), &list); err != nil || list.Keys == nil || len(list.Keys) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
