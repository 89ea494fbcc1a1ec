package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

// TestJSONIsOneObject: whatever a command prints for machines has one shape, an
// object whose members have names, also where nothing is found or something is wrong.
func TestJSONIsOneObject(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(30), nil); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(engined(t, "encryption", "new-key").ok(t).out), 0o600); err != nil {
		t.Fatal(err)
	}
	toNode, toDatabase := []string{"--url", n.url}, []string{"--database-url", db}
	for _, tc := range []struct {
		line string
		to   []string
		has  string
	}{
		{"compact s --budget 2000 --force", toNode, "compacted"},
		{"compact s --budget 1000 --dry-run", toNode, "compacted"},
		{"sessions", toNode, "sessions"},
		{"show s", toNode, "sessionKey"},
		{"events s", toNode, "events"},
		{"summaries s", toNode, "summaries"},
		{"window s", toNode, "messages"},
		{"diff s --from 3", toNode, "lines"},
		{"cache-report s", toNode, "calls"},
		{"grep nothing-of-that", toNode, "hits"},
		{"fork s t", toNode, "epoch"},
		{"reset t", toNode, "epoch"},
		{"maintain s", toNode, "changed"},
		{"undo-compaction s", toNode, "epoch"},
		{"engines", toNode, "engines"},
		{"engines clear x", toNode, "cleared"},
		{"summarizers", toNode, "summarizers"},
		{"health", toNode, "ready"},
		{"doctor", toNode, "checks"},
		{"audit", toNode, "audit"},
		{"openapi", toNode, "paths"},
		{"erase t --yes", toNode, "erased"},
		{"version", nil, "version"},
		{"config", nil, "settings"},
		{"doctor --nats-url nats://127.0.0.1:1", toDatabase, "checks"},
		{"doctor --verify", toDatabase, "differences"},
		{"rebuild --dry-run", toDatabase, "changes"},
		{"retention --dry-run --retention-idle 1d", toDatabase, "sessions"},
		{"migrate status", toDatabase, "migrations"},
		{"keys create --tenant acme --scope analyst", toDatabase, "key"},
		{"keys list", toDatabase, "keys"},
		{"tenants list", toDatabase, "tenants"},
		{"encryption status --encryption-key-file " + keys, toDatabase, "masterKeys"},
	} {
		got := engined(t, append(append(strings.Fields(tc.line), "--json"), tc.to...)...)
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(got.out), &object); err != nil || object[tc.has] == nil {
			t.Errorf("engined %s --json has no %q (%v): %.300s%s", tc.line, tc.has, err, got.out, got.err)
		}
	}
}

// TestDoctorAsksWhatItIsPointedAt: a database in the settings hides no node that
// was named.
func TestDoctorAsksWhatItIsPointedAt(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	file := filepath.Join(t.TempDir(), "engined.yaml")
	writeFile(t, file, "database-url: "+db+"\nnats-url: nats://127.0.0.1:1\n")
	for line, want := range map[string]struct{ node, database bool }{
		"doctor":                {database: true},
		"doctor --url " + n.url: {node: true},
		"doctor --database-url " + db + " --url " + n.url: {node: true, database: true},
	} {
		got := engined(t, append(strings.Fields(line), "--config", file)...)
		if strings.Contains(got.out, "node       "+n.url+" is ready") != want.node || strings.Contains(got.out, "schema     up to date") != want.database {
			t.Errorf("engined %s:\n%s%s", line, got.out, got.err)
		}
	}
	got := engined(t, "doctor", "--url", n.url)
	if !strings.Contains(got.out, "models     none is set: the extractive rule writes") {
		t.Errorf("without models:\n%s", got.out)
	}
	if got := engined(t, "doctor", "--config", file); !strings.Contains(got.out, "127.0.0.1:1: ") || !strings.Contains(got.out, "is NATS running") {
		t.Errorf("NATS away:\n%s", got.out)
	}
}
