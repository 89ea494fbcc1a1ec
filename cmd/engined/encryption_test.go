package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/vault"
)

// keyFile writes a file of master keys.
func keyFile(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func newMaster(t *testing.T, id string) string {
	t.Helper()
	return engined(t, "encryption", "new-key", id).ok(t).out
}

func TestNewMasterKeys(t *testing.T) {
	t.Parallel()
	line := newMaster(t, "a.b_c-1")
	if !regexp.MustCompile(`^a\.b_c-1 [A-Za-z0-9+/]{43}=\n$`).MatchString(line) {
		t.Errorf("%q", line)
	}
	if _, err := vault.ParseMasters([]byte(line)); err != nil {
		t.Error(err)
	}
	if another := newMaster(t, "a.b_c-1"); another == line {
		t.Error("two keys are the same")
	}
	if today := engined(t, "encryption", "new-key").ok(t).out; !strings.HasPrefix(today, "k20260102 ") {
		t.Errorf("without an id: %q", today)
	}
	for _, args := range [][]string{{"two words"}, {"a/b"}, {""}, {strings.Repeat("a", 65)}, {"a", "b"}} {
		if got := engined(t, append([]string{"encryption", "new-key"}, args...)...); got.code != exitUsage || got.out != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// execute runs a statement on a database.
func execute(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestRotatingTheMasterKey(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	older, newer := newMaster(t, "older"), newMaster(t, "newer")
	first := keyFile(t, older)
	node := func(args ...string) []string {
		return append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1", "--encryption", "on"}, args...)
	}
	n := serve(t, node("--encryption-key-file", first)...)
	status := func(file string, more ...string) result {
		return engined(t, append([]string{"encryption", "status", "--database-url", db, "--encryption-key-file", file}, more...)...)
	}
	rotate := func(file string) result {
		return engined(t, "encryption", "rotate", "--database-url", db, "--encryption-key-file", file)
	}
	if got := status(first).ok(t).out; got != "no session keys yet; older wraps new ones\n" {
		t.Errorf("before the first session: %q", got)
	}
	cl := clientOf(t, n.url, "")
	for _, key := range []string{"one", "two", "three"} {
		if _, err := cl.IngestBatch(t.Context(), key, conversation(1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := status(first).ok(t).out; got != "older: 3 session keys (wraps new ones)\n" {
		t.Errorf("%q", got)
	}
	n.end(t)

	// What does not open them changes nothing, and no node starts with it.
	for name, file := range map[string]string{"another one": keyFile(t, newer), "another one under its id": keyFile(t, newMaster(t, "older"))} {
		for what, got := range map[string]result{"rotate": rotate(file), "status": status(file), "serve": engined(t, node("--encryption-key-file", file)...)} {
			if got.code != exitFailure || !strings.Contains(got.err, "older") {
				t.Errorf("%s with %s: %+v", what, name, got)
			}
		}
	}
	for what, got := range map[string]result{
		"rotate without a file":   engined(t, "encryption", "rotate", "--database-url", db),
		"status without a file":   engined(t, "encryption", "status", "--database-url", db),
		"rotate without database": engined(t, "encryption", "rotate", "--encryption-key-file", first),
		"rotate with an argument": engined(t, "encryption", "rotate", "x", "--database-url", db, "--encryption-key-file", first),
		"status with an argument": status(first, "x"),
	} {
		if got.code != exitUsage {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for what, file := range map[string]string{"a missing file": filepath.Join(t.TempDir(), "none"), "half a key": keyFile(t, older[:30]), "an empty file": keyFile(t), "a key twice": keyFile(t, older, older)} {
		if got := rotate(file); got.code != exitFailure || strings.Contains(got.err, strings.Fields(older)[1]) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := status(first).ok(t).out; got != "older: 3 session keys (wraps new ones)\n" {
		t.Errorf("after all that: %q", got)
	}

	both := keyFile(t, newer, "# the one before\n", older)
	if got := rotate(both).ok(t).out; got != "3 session keys wrapped anew; all are under newer\n" {
		t.Errorf("%q", got)
	}
	if got := rotate(both).ok(t).out; !strings.HasPrefix(got, "0 session keys") {
		t.Errorf("again: %q", got)
	}
	var said struct {
		MasterKeys []struct {
			ID          string
			SessionKeys int
			Active      bool
		}
	}
	if err := json.Unmarshal([]byte(status(both, "--json").ok(t).out), &said); err != nil || len(said.MasterKeys) != 1 || said.MasterKeys[0].ID != "newer" || said.MasterKeys[0].SessionKeys != 3 || !said.MasterKeys[0].Active {
		t.Errorf("%+v, %v", said, err)
	}

	// One that is damaged is told; the others go, and nodes start and serve.
	execute(t, db, `UPDATE session_keys SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) WHERE sid = (SELECT sid FROM sessions WHERE session_key = 'two')`)
	back := keyFile(t, older, newer)
	if got := rotate(back); got.code != exitFailure || !strings.Contains(got.err, "2 session keys wrapped anew, not all: session keys that do not open: 1") {
		t.Errorf("with a damaged one: %+v", got)
	}
	if got := status(back).ok(t).out; got != "newer: 1 session key (none opens)\nolder: 2 session keys (wraps new ones)\n" {
		t.Errorf("%q", got)
	}
	if got := engined(t, "doctor", "--database-url", db, "--encryption-key-file", back); !strings.Contains(got.out, "1 session key under the master key newer, and none opens") {
		t.Errorf("doctor: %+v", got)
	}
	n = serve(t, node("--encryption-key-file", back)...)
	cl = clientOf(t, n.url, "")
	for key, want := range map[string]string{"one": "", "two": "503", "three": ""} {
		_, err := cl.IngestBatch(t.Context(), key, conversation(1), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if strings.Contains(n.err.String(), strings.Fields(older)[1]) {
		t.Error("the log has a master key")
	}
}

func TestKeysOfAnotherDatabaseAreMissed(t *testing.T) {
	t.Parallel()
	db, keys := testdb.Empty(t), testdb.Empty(t)
	file := keyFile(t, newMaster(t, "a"))
	args := []string{"serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1", "--encryption", "on", "--encryption-key-file", file}
	n := serve(t, append(args, "--encryption-keys-dsn", keys)...)
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
		t.Fatal(err)
	}
	ready := func() string {
		t.Helper()
		got := engined(t, "health", "--url", n.url, "--json").ok(t)
		return got.out
	}
	if got := ready(); !strings.Contains(got, "session keys") || strings.Contains(got, "does not answer") {
		t.Errorf("ready: %s", got)
	}
	execute(t, keys, `ALTER TABLE session_keys RENAME TO away`)
	if got := ready(); !strings.Contains(got, "their database does not answer") {
		t.Errorf("without the keys: %s", got)
	}
	execute(t, keys, `ALTER TABLE away RENAME TO session_keys`)
	n.end(t)
	if said := n.err.String(); strings.Contains(said, "encrypted sessions can't be read here") {
		t.Errorf("with their database: %s", said)
	}
	// Without it sessions would seem destroyed, and erasing them would destroy no key.
	n = serve(t, args...)
	n.end(t)
	if said := n.err.String(); !strings.Contains(said, "encrypted sessions can't be read here") {
		t.Errorf("a node that looks elsewhere says nothing: %s", said)
	}
	if got := engined(t, "doctor", "--database-url", db, "--encryption-key-file", file); !strings.Contains(got.out, "✗ encryption") || !strings.Contains(got.out, "encryption-keys-dsn") {
		t.Errorf("doctor: %+v", got)
	}
	if got := engined(t, "doctor", "--database-url", db, "--encryption-key-file", file, "--encryption-keys-dsn", keys); !strings.Contains(got.out, "✓ encryption") {
		t.Errorf("doctor with their database: %+v", got)
	}
	execute(t, db, `UPDATE sessions SET created_at = now() - interval '2 days', updated_at = now() - interval '2 days'`)
	retention := []string{"retention", "--retention-age", "1d", "--database-url", db, "--encryption-key-file", file}
	if got := engined(t, retention...); got.code != exitFailure || !strings.Contains(got.err, "encryption-keys-dsn") {
		t.Errorf("retention would erase without destroying the key: %+v", got)
	}
	engined(t, append(retention, "--encryption-keys-dsn", keys)...).ok(t)
	if got := engined(t, "encryption", "status", "--encryption-keys-dsn", keys, "--encryption-key-file", file).ok(t).out; !strings.HasPrefix(got, "no session keys yet") {
		t.Errorf("the key is not destroyed: %s", got)
	}
}
