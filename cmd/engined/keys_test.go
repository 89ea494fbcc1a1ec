package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/testdb"
)

func TestKeysLiveInPostgres(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	n := serveIn(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	if said := n.err.String(); !strings.Contains(said, "no API key yet") {
		t.Errorf("it does not say that a key is needed: %s", said)
	}
	if got := engined(t, "sessions", "--url", n.url); got.code != exitFailure || !strings.Contains(got.err, "401") {
		t.Errorf("without a key: %+v", got)
	}

	key := strings.TrimSpace(engined(t, "keys", "create", "--tenant", "acme", "--scope", "gateway,analyst", "--name", "bot", "--database-url", db).ok(t).out)
	if !regexp.MustCompile(`^ek_[a-z2-7]{12}_[a-z2-7]{52}$`).MatchString(key) {
		t.Fatalf("key %q", key)
	}
	cl := clientOf(t, n.url, key)
	if _, err := cl.IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
		t.Fatal(err)
	}
	if got := engined(t, "engines", "clear", "x", "--url", n.url, "--key", key); !strings.Contains(got.err, "403") {
		t.Errorf("a gateway clears a quarantine: %+v", got)
	}

	var made struct{ Key, ID, Tenant string }
	got := engined(t, "keys", "create", "--tenant", "umbrella", "--scope", "admin", "--expires", "1d", "--json", "--database-url", db).ok(t)
	if err := json.Unmarshal([]byte(got.out), &made); err != nil || !strings.HasPrefix(made.Key, "ek_"+made.ID+"_") || made.Tenant != "umbrella" {
		t.Fatalf("%s, %v", got.out, err)
	}
	other := clientOf(t, n.url, made.Key)
	if _, err := other.Session(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("another tenant's session: %v", err)
	}

	list := engined(t, "keys", "list", "--database-url", db).ok(t).out
	if !strings.Contains(list, "acme") || !strings.Contains(list, "bot") || !strings.Contains(list, "until ") || strings.Contains(list, key) || strings.Contains(list, key[16:]) {
		t.Errorf("list:\n%s", list)
	}
	if one := engined(t, "keys", "list", "--tenant", "umbrella", "--json", "--database-url", db).ok(t).out; strings.Contains(one, "acme") || !strings.Contains(one, made.ID) {
		t.Errorf("of one tenant: %s", one)
	}

	engined(t, "keys", "revoke", key, "--database-url", db).ok(t)
	engined(t, "keys", "revoke", key[3:15], "--database-url", db).ok(t)
	if got := engined(t, "keys", "revoke", "nobodyskeyid", "--database-url", db); got.code != exitFailure || !strings.Contains(got.err, "no API key has this id") {
		t.Errorf("an unknown id: %+v", got)
	}
	awaitRefusal(t, cl)
	n.end(t)
	if list := engined(t, "keys", "list", "--json", "--database-url", db).ok(t).out; strings.Count(list, "lastUsedAt") != 2 || strings.Count(list, "revokedAt") != 1 {
		t.Errorf("uses are not noted: %s", list)
	}
}

// awaitRefusal waits until a revoked key ceases to count.
func awaitRefusal(t *testing.T, cl *client.Client) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		_, err := cl.Session(t.Context(), "s")
		if err != nil && strings.Contains(err.Error(), "401") && strings.Contains(err.Error(), "revoked") {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the revoked key still counts: %v", err)
		}
	}
}

func TestAnExposedNodeDemandsKeys(t *testing.T) {
	t.Parallel()
	n := serveIn(t, noEnv, "dev", "--listen", "0.0.0.0:0", "--data", t.TempDir(), "--database-url", testdb.Empty(t))
	res, err := http.Get(n.url + "/v1/sessions")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestDevTellsKeysWhereItsPostgresIs(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := serveIn(t, noEnv, "dev", "--listen", "127.0.0.1:0", "--data", data)
	key := strings.TrimSpace(engined(t, "keys", "create", "--tenant", "acme", "--scope", "admin", "--data", data).ok(t).out)
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, n.url, key).Session(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a key opens another tenant's session: %v", err)
	}
	n.end(t)
	if got := engined(t, "keys", "list", "--data", data); got.code != exitUsage || !strings.Contains(got.err, "no database") {
		t.Errorf("after the end of dev: %+v", got)
	}
}

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "90d": now.AddDate(0, 0, 90), "12h": now.Add(12 * time.Hour), "2030-01-31": now.AddDate(0, 0, 30),
		"2030-01-31T00:00:00Z": now.AddDate(0, 0, 30),
	} {
		if got, err := parseExpiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0d", "-1h", "x", "1.5d", "d", "2029-12-31", "90"} {
		if got, err := parseExpiry(text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestKeysCreateWantsItsFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--scope", "admin"},
		{"--tenant", "t"},
		{"--tenant", "t", "--scope", "god"},
		{"--tenant", "a\nb", "--scope", "admin"},
		{"--tenant", "t", "--scope", "admin", "--expires", "soon"},
	} {
		got := engined(t, append([]string{"keys", "create", "--database-url", "postgres://127.0.0.1:1/x"}, args...)...)
		if got.code != exitUsage {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
