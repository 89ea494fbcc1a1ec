package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/internal/testdb"
)

// TestAnUnknownEngineCostsNoTurn: the default engine serves and everybody who
// looks is told.
func TestAnUnknownEngineCostsNoTurn(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--engine", "Lossless", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(2), nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(n.err.String(), "level=ERROR"); n != 1 {
		t.Errorf("the start says it %d times", n)
	}
	for _, want := range []string{`known="legacy, lossless, recall, rolling"`, `there is no engine \"Lossless\"`} {
		if !strings.Contains(n.err.String(), want) {
			t.Errorf("the start does not say %s:\n%s", want, n.err)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		says []string
		code int
	}{
		"listing": {[]string{"engines"}, []string{"legacy    core", "serves", "Lossless is set aside since", "resolve failed: not registered"}, exitOK},
		"doctor":  {[]string{"doctor"}, []string{"✗ engines", "legacy serves", "fix: the setting engine names none of legacy, lossless, recall, rolling"}, exitFailure},
		"clear":   {[]string{"engines", "clear", "nobody"}, []string{"nobody was not set aside"}, exitOK},
	} {
		got := engined(t, append(tc.args, "--url", n.url)...)
		for _, want := range tc.says {
			if got.code != tc.code || !strings.Contains(got.out, want) {
				t.Errorf("%s: exit code %d, no %q in %s%s", name, got.code, want, got.out, got.err)
			}
		}
	}
	if got := metricsOf(t, n.url); !strings.Contains(got, `engined_engine_quarantined{engine="Lossless",operation="resolve"} 1`) ||
		!strings.Contains(got, "engined_engine_calls_abandoned 0") {
		t.Errorf("metrics:\n%s", got)
	}
	if !strings.Contains(n.err.String(), "set aside") {
		t.Errorf("the log does not tell: %s", n.err)
	}
}

func TestTheConfiguredEngineServes(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"lossless": "lossless", "rolling": "rolling", "none": "legacy"} {
		n := serve(t, "serve", "--listen", "127.0.0.1:0", "--engine", setting, "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
		if got := engined(t, "engines", "--json", "--url", n.url).ok(t); !strings.Contains(got.out, `"serving":"`+want+`"`) {
			t.Errorf("slot %s: %s", setting, got.out)
		}
		if got := engined(t, "doctor", "--url", n.url); !strings.Contains(got.out, "✓ engines    "+want+" serves") {
			t.Errorf("slot %s: %s", setting, got.out)
		}
	}
}

func TestOperationTimeoutsNameOperations(t *testing.T) {
	t.Parallel()
	got := engined(t, "serve", "--listen", "127.0.0.1:0", "--engine-timeouts", "assemblage=2s", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	if got.code != exitFailure || !strings.Contains(got.err, `"assemblage" is not one of`) {
		t.Errorf("%+v", got)
	}
}

func metricsOf(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// notes is an engine in another process: it shows one message of its own.
type notes struct{}

func (notes) Info() contextengine.Info {
	return contextengine.Info{ID: "notes", Name: "Notes", Version: "7"}
}

func (notes) Ingest(context.Context, contextengine.IngestParams) (contextengine.IngestResult, error) {
	return contextengine.IngestResult{Ingested: true, Seq: 1, Head: 1, Epoch: 1}, nil
}

func (notes) Assemble(context.Context, contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	return contextengine.AssembleResult{Messages: []json.RawMessage{[]byte(`{"role":"user","content":"a note"}`)}, EstimatedTokens: 1}, nil
}

func (notes) Compact(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true, Reason: "nothing to compact"}, nil
}

// TestARemoteEngineServesUntilItIsAway: then the default engine does, until the
// remote one is back and an operator says so.
func TestARemoteEngineServesUntilItIsAway(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	handler := remote.Handler(notes{}, remote.HandlerOptions{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(far.Close)
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--engine", "notes", "--engines", "notes="+far.URL,
		"--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	shows := func(want string) {
		t.Helper()
		if _, err := cl.IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
			t.Fatal(err)
		}
		_, window, err := cl.Assemble(t.Context(), "s", contextengine.AssembleParams{})
		if err != nil || !strings.Contains(string(window), want) {
			t.Errorf("the window does not show %q: %s, %v", want, window, err)
		}
	}
	shows("a note")
	if got := engined(t, "engines", "--url", n.url).ok(t); !strings.Contains(got.out, "remote:notes  Notes") || strings.Contains(got.out, far.URL) {
		t.Errorf("engines: %s", got.out)
	}
	away.Store(true)
	shows("Question 0")
	if got := engined(t, "engines", "--url", n.url).ok(t); !strings.Contains(got.out, "notes is set aside since") {
		t.Errorf("engines: %s", got.out)
	}
	away.Store(false)
	shows("Question 0")
	engined(t, "engines", "clear", "notes", "--url", n.url).ok(t)
	shows("a note")
}

func TestRemoteEnginesDoNotTakeBuiltInIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"legacy", "lossless", "rolling"} {
		got := engined(t, "serve", "--listen", "127.0.0.1:0", "--engines", id+"=http://127.0.0.1:1", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
		if got.code != exitFailure || !strings.Contains(got.err, id) {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// TestANodeIsAnotherNodesRemoteEngine: its log holds the sessions, and its key is
// good for its own tenant alone.
func TestANodeIsAnotherNodesRemoteEngine(t *testing.T) {
	t.Setenv("FAR_TOKEN", "far-token")
	const nowhere = "nats://127.0.0.1:1"
	far := serve(t, "serve", "--listen", "127.0.0.1:0", "--keys", "far-token=acme", "--database-url", testdb.Empty(t), "--nats-url", nowhere)
	near := serve(t, "serve", "--listen", "127.0.0.1:0", "--keys", "near-token=acme,other=umbrella", "--engine", "far",
		"--engines", "far="+far.url+";owner=acme-team;token-env=FAR_TOKEN;timeout=5s", "--database-url", testdb.Empty(t), "--nats-url", nowhere)
	cl, there := clientOf(t, near.url, "near-token"), clientOf(t, far.url, "far-token")
	if _, err := cl.IngestBatch(t.Context(), "s", conversation(3), nil); err != nil {
		t.Fatal(err)
	}
	_, want, err := there.Assemble(t.Context(), "s", contextengine.AssembleParams{})
	if err != nil || !strings.Contains(string(want), "Question 2") {
		t.Fatalf("%s, %v", want, err)
	}
	if _, got, err := cl.Assemble(t.Context(), "s", contextengine.AssembleParams{}); err != nil || string(got) != string(want) {
		t.Errorf("%s, %v", got, err)
	}
	if got := engined(t, "engines", "--url", near.url, "--key", "near-token").ok(t); !strings.Contains(got.out, "acme-team") || !strings.Contains(got.out, "engined lossless") {
		t.Errorf("engines: %s", got.out)
	}
	// The far key is not umbrella's: its sessions stay here, with the default engine.
	if _, err := clientOf(t, near.url, "other").IngestBatch(t.Context(), "s", conversation(9), nil); err != nil {
		t.Fatal(err)
	}
	if _, got, err := there.Assemble(t.Context(), "s", contextengine.AssembleParams{}); err != nil || string(got) != string(want) {
		t.Errorf("another tenant's messages are there: %s, %v", got, err)
	}
}
