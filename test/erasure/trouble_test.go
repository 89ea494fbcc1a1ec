package erasure_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/vault"
)

// calls are all that a client does with a session, its erasure last.
func calls(key string) []struct {
	method, path string
	body         object
} {
	return []struct {
		method, path string
		body         object
	}{
		{"GET", path(key), nil},
		{"GET", path(key) + "/events", nil},
		{"GET", path(key) + "/events?limit=2&after=3", nil},
		{"GET", path(key) + "/summaries", nil},
		{"GET", "/v1/feed?limit=500", nil},
		{"GET", "/v1/sessions", nil},
		{"GET", "/v1/search?q=release", nil},
		{"POST", path(key) + "/assemble", object{"tokenBudget": 4000}},
		{"POST", path(key) + "/assemble", object{"tokenBudget": 4000, "asOfSeq": 3, "explain": true}},
		{"POST", path(key) + "/ingest", object{"message": object{"role": "user", "content": "more"}}},
		{"POST", path(key) + "/commit-turn", object{"advancementKey": "turn", "messages": messages(1, "a turn")}},
		{"POST", path(key) + "/transcript", object{
			"sessionId": "host", "gatewayId": "gw", "cursor": "c2", "entries": []any{
				object{"type": "message", "id": "e2", "parentId": "e1", "message": object{"role": "user", "content": "two"}},
			},
		}},
		{"POST", path(key) + "/compact", object{"force": true, "tokenBudget": 1000}},
		{"POST", path(key) + "/maintain", object{}},
		{"POST", path(key) + "/undo-compaction", object{}},
		{"POST", path(key) + "/rewind", object{"toSeq": 2}},
		{"POST", path(key) + "/reset", object{"reason": "why"}},
		{"POST", path(key) + "/fork", object{"newSessionKey": key + " fork", "atSeq": 2}},
		{"POST", path(key) + "/subagents", object{"childSessionKey": key + " child", "contextMode": "fork"}},
		{"DELETE", path(key), nil},
	}
}

// fillEncrypted is a session with a turn, a lane and a compaction.
func (s *service) fillEncrypted(key string) store.Session {
	t := s.t
	t.Helper()
	for _, c := range []struct {
		call string
		body object
	}{
		{"ingest-batch", object{"messages": messages(6, "the release")}},
		{"transcript", object{"sessionId": "host", "gatewayId": "gw", "cursor": "c1", "entries": []any{
			object{"type": "message", "id": "e1", "message": object{"role": "user", "content": "one"}},
		}}},
		{"compact", object{"force": true, "tokenBudget": 1500}},
	} {
		if a := s.post(key, c.call, c.body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", c.call, a.status, a.body)
		}
	}
	row, err := s.store.Session(t.Context(), tenant, key)
	if err != nil || !row.Sealed || row.Epoch < 2 {
		t.Fatalf("%+v, %v", row, err)
	}
	return row
}

// TestEncryptedSessionsInTrouble breaks encrypted sessions in every way and
// does with each all that a client does: answers are whole or one of the
// problems that say so, other sessions go on, and it can be erased.
func TestEncryptedSessionsInTrouble(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, sql string
		// slug is the problem that is told.
		slug string
		// noErasing: this node could not destroy the key.
		noErasing bool
		node      func(*testing.T, string) store.Config
	}{
		{name: "no keys", slug: "encryption-unavailable", noErasing: true, node: func(_ *testing.T, url string) store.Config {
			return store.Config{URL: url}
		}},
		{name: "another master key under the id", slug: "encryption-unavailable", node: func(t *testing.T, url string) store.Config {
			line, err := vault.NewMasterKey("test")
			if err != nil {
				t.Fatal(err)
			}
			return store.Config{URL: url, Vault: storetest.Vault(t, url, line), Encrypt: true}
		}},
		{name: "the key is gone", slug: "session-key-gone", sql: `DELETE FROM session_keys WHERE sid = $1`},
		{name: "the key is damaged", slug: "damaged", sql: `UPDATE session_keys SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) WHERE sid = $1`},
		{name: "the key is cut off", slug: "damaged", sql: `UPDATE session_keys SET wrapped = substr(wrapped, 1, 7) WHERE sid = $1`},
		{name: "the key is another session's", slug: "damaged", sql: `UPDATE session_keys k SET wrapped = x.wrapped FROM session_keys x WHERE k.sid = $1 AND x.sid <> $1`},
		{name: "bodies are flipped", slug: "damaged", sql: `UPDATE events SET body = set_byte(body, 25, get_byte(body, 25) # 1) WHERE sid = $1`},
		{name: "their first byte is", slug: "damaged", sql: `UPDATE events SET body = set_byte(body, 0, get_byte(body, 0) # 1) WHERE sid = $1`},
		{name: "bodies are cut off", slug: "damaged", sql: `UPDATE events SET body = substr(body, 1, 10) WHERE sid = $1`},
		{name: "bodies are empty", slug: "damaged", sql: `UPDATE events SET body = '' WHERE sid = $1`},
		{name: "bodies are forged", slug: "damaged", sql: `UPDATE events SET body = '{"role":"user","content":"forged"}' WHERE sid = $1`},
		{name: "bodies are another session's", slug: "damaged", sql: `UPDATE events e SET body = x.body FROM events x WHERE e.sid = $1 AND x.sid <> $1 AND x.seq = 1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startEncrypted(t, nil)
			s.fillEncrypted("beside")
			row := s.fillEncrypted("k")
			if tc.sql != "" {
				breakWith(t, s.db, tc.sql, row.SID)
			}
			cfg := storetest.Encrypt(t, store.Config{URL: s.db})
			if tc.node != nil {
				cfg = tc.node(t, s.db)
			} else if _, err := cfg.Vault.Check(t.Context()); err != nil {
				t.Fatalf("a node would not start: %v", err)
			}
			_, node := s.serveOn(cfg, nil, false)
			for _, c := range calls("k") {
				a := ask(t, node, c.method, c.path, orNil(c.body))
				if !json.Valid(a.body) || bytes.Contains(a.body, []byte("forged")) {
					t.Errorf("%s %s: %.200q", c.method, c.path, a.body)
				}
				switch {
				case a.status == http.StatusOK:
					if c.path == path("k")+"/events" || c.path == path("k")+"/summaries" || c.method == "DELETE" && tc.noErasing {
						t.Errorf("%s %s is answered: %.200s", c.method, c.path, a.body)
					}
				case a.slug() != tc.slug || c.method == "DELETE" && !tc.noErasing:
					t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
				}
			}
			if tc.node == nil {
				// The session beside it, on the node that met the broken one.
				for _, c := range calls("beside") {
					if a := ask(t, node, c.method, c.path, orNil(c.body)); a.status != http.StatusOK {
						t.Errorf("beside it: %s %s: %d %s", c.method, c.path, a.status, a.body)
					}
				}
			}
		})
	}
}

// A stream tells all that is before a damaged event, and then what is wrong: a
// client that were merely cut off would come back for ever.
func TestAStreamEndsAtWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s := startEncrypted(t, nil)
	row := s.fillEncrypted("k")
	breakWith(t, s.db, `UPDATE events SET body = set_byte(body, 25, get_byte(body, 25) # 1) WHERE sid = $1 AND seq = 4`, row.SID)
	// It ends by itself, so the whole of it can be read.
	a := ask(t, s.node, http.MethodGet, path("k")+"/events/stream", nil)
	if ids := regexp.MustCompile(`(?m)^id: (.*)$`).FindAllSubmatch(a.body, -1); a.status != http.StatusOK || len(ids) != 3 || string(ids[2][1]) != "3" {
		t.Errorf("%d, %d events: %s", a.status, len(ids), a.body)
	}
	again := ask(t, s.node, http.MethodGet, path("k")+"/events/stream?after=3", nil)
	if again.status != http.StatusGone || again.slug() != "damaged" || !bytes.Contains(again.body, []byte(`"seq":4`)) {
		t.Errorf("coming back: %d %s", again.status, again.body)
	}
	breakWith(t, s.db, `DELETE FROM session_keys WHERE sid = $1`, row.SID)
	_, other := s.serve(nil, false)
	if gone := ask(t, other, http.MethodGet, path("k")+"/events/stream?after=4", nil); gone.slug() != "session-key-gone" {
		t.Errorf("without its key: %d %s", gone.status, gone.body)
	}
}

func orNil(body object) any {
	if body == nil {
		return nil
	}
	return body
}

func breakWith(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if tag, err := conn.Exec(t.Context(), sql, args...); err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
	}
}
