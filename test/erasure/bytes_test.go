package erasure_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize"
)

// Markers: what only the erased session says, by where it says it. Each is
// also looked for in hexadecimal, which is how bytea is dumped.
var markers = map[string]string{
	"key":          "agent:main:chat:MARK-KEY-7f3a",
	"host session": "MARK-HOSTSESSION-1b9e",
	"gateway":      "MARK-GATEWAY-55d0",
	"client key":   "MARK-CLIENTKEY-c1c4",
	"turn":         "MARK-ADVANCEMENT-08aa",
	"small":        "MARK-SMALL-93be",
	"large":        "MARK-LARGE-4e21",
	"instructions": "MARK-INSTRUCTIONS-d7d2",
	"owner":        "MARK-OWNER-6a60",
	"reason":       "MARK-REASON-2f8c",
	"anchor":       "MARK-ANCHOR-ab31",
	"summary":      "MARK-SUMMARY-e5e5",
}

// marking says the summary's marker and what it was told to.
type marking struct{ summarize.Extractive }

func (marking) Summarize(_ context.Context, r summarize.Request) (summarize.Result, error) {
	return summarize.Result{Text: markers["summary"] + " " + r.Instructions, Model: "none"}, nil
}

func TestNoByteOfAnErasedSessionIsLeft(t *testing.T) {
	t.Parallel()
	noByteIsLeft(t, start(t, marking{}))
}

func TestNoByteOfAnErasedEncryptedSessionIsLeft(t *testing.T) {
	t.Parallel()
	noByteIsLeft(t, startEncrypted(t, marking{}))
}

// said are the markers of what a session says. The others are its names.
var said = []string{"small", "large", "instructions", "reason", "summary", "anchor"}

func noByteIsLeft(t *testing.T, s *service) {
	t.Helper()
	key := markers["key"]
	naming := func(body object) object {
		body["sessionId"], body["gatewayId"] = markers["host session"], markers["gateway"]
		return body
	}
	must := func(a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	must(s.post(key, "lease", naming(object{"owner": markers["owner"], "ttlMs": 60_000})))
	must(s.post(key, "ingest", naming(object{
		"message": object{"role": "user", "content": markers["small"]}, "idempotencyKey": markers["client key"],
	})))
	must(s.post(key, "commit-turn", naming(object{
		"advancementKey": markers["turn"], "messages": messages(8, markers["small"]), "tokenBudget": 1500,
		"admission": object{"id": markers["anchor"]}, "terminal": object{"id": markers["anchor"]},
	})))
	s.await("the worker's compaction", func() bool {
		var row struct {
			Epoch    int64
			Attempts []struct{ Outcome, Error string }
		}
		ask(t, s.node, http.MethodGet, path(key), nil).into(t, &row)
		for _, a := range row.Attempts {
			if a.Outcome == "failed" {
				t.Fatal(a.Error)
			}
		}
		return row.Epoch > 1
	})
	must(s.post(key, "ingest", naming(object{
		"message": object{"role": "user", "content": markers["large"] + strings.Repeat(" "+markers["large"], 30_000)},
	})))
	must(s.post(key, "ingest-batch", naming(object{"messages": messages(8, markers["small"])})))
	must(s.post(key, "compact", naming(object{"force": true, "tokenBudget": 4000, "customInstructions": "say " + markers["instructions"]})))
	must(s.post(key, "assemble", naming(object{"tokenBudget": 4000, "prompt": markers["small"], "model": "m"})))
	must(s.post(key, "reset", naming(object{"reason": markers["reason"]})))
	must(s.post(key, "ingest", naming(object{"message": object{"role": "user", "content": markers["small"]}})))
	row, err := s.store.Session(t.Context(), tenant, key)
	if err != nil {
		t.Fatal(err)
	}
	// A draft of a compaction under way, and a debt that waits.
	if err := s.store.PutDraft(t.Context(), tenant, row.SID, []byte("key"), []byte(markers["summary"])); err != nil {
		t.Fatal(err)
	}
	for _, node := range []*httptest.Server{s.node, s.other} {
		must(ask(t, node, http.MethodPost, path(key)+"/assemble", object{"tokenBudget": 4000}))
	}
	// What descends from it: a fork with a summary of its own, and sub-agents.
	var row0 struct{ Head int64 }
	ask(t, s.node, http.MethodGet, path(key), nil).into(t, &row0)
	must(s.post(key, "fork", object{"newSessionKey": "fork", "atSeq": row0.Head}))
	must(s.post("fork", "ingest-batch", object{"messages": messages(8, "the fork's own")}))
	must(s.post("fork", "compact", object{"force": true, "tokenBudget": 4000, "customInstructions": markers["instructions"]}))
	must(s.post("fork", "fork", object{"newSessionKey": "fork of the fork", "atSeq": 1}))
	for _, mode := range []string{"isolated", "fork"} {
		must(s.post(key, "subagents", object{"childSessionKey": "child " + mode, "contextMode": mode}))
		must(s.post("child "+mode, "ingest", object{"message": object{"role": "user", "content": "the child's own"}}))
	}
	must(s.post("another", "ingest", object{"message": object{"role": "user", "content": "this one stays"}}))

	hits := func() int {
		var found struct{ Hits []any }
		ask(t, s.node, http.MethodGet, "/v1/search?q="+markers["small"], nil).into(t, &found)
		return len(found.Hits)
	}
	if !s.encrypted {
		s.await("the search index", func() bool { return hits() > 0 })
	}

	// The test sees what it looks for.
	found := dump(t, s.db)
	for name, marker := range markers {
		switch {
		case s.encrypted && slices.Contains(said, name):
			for table, text := range found {
				if holds(map[string][]byte{table: text}, marker) {
					t.Errorf("the %s marker is plain in table %s", name, table)
				}
			}
		case !holds(found, marker):
			t.Errorf("the %s marker is nowhere: the test proves nothing of it", name)
		}
	}
	must(ask(t, s.node, http.MethodDelete, path(key), nil))

	after := dump(t, s.db)
	if _, ok := found["public.search_parts"]; !ok || !s.encrypted && !holds(map[string][]byte{"": found["public.search_parts"]}, markers["small"]) {
		t.Error("the search index did not hold the session: the test proves nothing of it")
	}
	if holds(after, "this one stays") == s.encrypted {
		t.Error("the other session is gone, or the dump does not show it; or it is plain")
	}
	for name, node := range map[string]*httptest.Server{"the node": s.node, "the other node, which had it cached": s.other} {
		a := ask(t, node, http.MethodPost, path(key)+"/assemble", object{"tokenBudget": 4000})
		var window struct {
			Messages []any
			Head     int64
		}
		a.into(t, &window)
		if len(window.Messages) > 0 || window.Head != 0 {
			t.Errorf("%s still shows a window: %s", name, a.body)
		}
	}
	for _, heir := range []string{"fork", "fork of the fork", "child isolated", "child fork"} {
		var window struct{ Messages []json.RawMessage }
		ask(t, s.other, http.MethodPost, path(heir)+"/assemble", object{"tokenBudget": 100_000}).into(t, &window)
		for name, marker := range markers {
			for _, m := range window.Messages {
				if bytes.Contains(m, []byte(marker)) {
					t.Errorf("%s marker in the window of %s", name, heir)
				}
			}
		}
	}
	for heir, own := range map[string]string{"fork": "the fork's own", "child isolated": "the child's own", "child fork": "the child's own"} {
		if a := ask(t, s.node, http.MethodGet, path(heir)+"/events", nil); !bytes.Contains(a.body, []byte(own)) {
			t.Errorf("%s lost its own messages: %.300s", heir, a.body)
		}
	}
	if n := hits(); n > 0 {
		t.Errorf("search finds the erased session %d times", n)
	}
	bustest.Stop(t, s.nats) // everything it holds is on its disk now
	files, size := natsFiles(t, s.natsDir)
	if size == 0 {
		t.Error("the NATS store is empty: the test proves nothing of it")
	}
	for name, marker := range markers {
		for table, text := range after {
			if holds(map[string][]byte{table: text}, marker) {
				t.Errorf("%s marker left in table %s", name, table)
			}
		}
		for file, content := range files {
			if bytes.Contains(content, []byte(marker)) {
				t.Errorf("%s marker in %s", name, file)
			}
		}
	}
}

func holds(dump map[string][]byte, marker string) bool {
	encoded := []byte(hex.EncodeToString([]byte(marker)))
	for _, text := range dump {
		if bytes.Contains(text, []byte(marker)) || bytes.Contains(text, encoded) {
			return true
		}
	}
	return false
}

// dump is the text of every table of the database, as pg_dump would write it.
func dump(t *testing.T, url string) map[string][]byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `
		SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables
		UNION SELECT quote_ident(schemaname) || '.' || quote_ident(matviewname) FROM pg_matviews`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte, len(tables))
	for _, table := range tables {
		var text bytes.Buffer
		if _, err := conn.PgConn().CopyTo(t.Context(), &text, `COPY `+table+` TO STDOUT`); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		out[table] = text.Bytes()
	}
	return out
}

// natsFiles reads every file of the NATS store.
func natsFiles(t *testing.T, dir string) (files map[string][]byte, size int) {
	t.Helper()
	files = map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path], size = content, size+len(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, size
}
