package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/testdb"
)

func TestANodeAndAWorkerShareTheWork(t *testing.T) {
	t.Parallel()
	db, nats := testdb.Empty(t), bustest.StartTCP(t).URL()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", nats)
	worker := serve(t, "worker", "--health-listen", "127.0.0.1:0", "--database-url", db, "--nats-url", nats)
	if said := worker.out.String(); !strings.Contains(said, "ready: 2 compactions at one time, NATS 127.0.0.1:") {
		t.Errorf("the worker says %q", said)
	}

	cl := clientOf(t, n.url, "")
	messages := conversation(60)
	if _, err := cl.IngestBatch(t.Context(), "s", messages, nil); err != nil {
		t.Fatal(err)
	}
	res, err := cl.AfterTurn(t.Context(), "s", 2000)
	if err != nil {
		t.Fatal(err)
	}
	if res.Compaction != contextengine.CompactionScheduled {
		t.Fatalf("compaction %s", res.Compaction)
	}
	// The attempt is recorded behind the commit.
	s := awaitSession(t, cl, "s", func(s client.Session) bool { return s.Epoch > res.Epoch && len(s.Attempts) > 0 })
	if s.Attempts[0].Outcome != "compacted" {
		t.Errorf("attempts %+v", s.Attempts)
	}
	engined(t, "doctor", "--database-url", db, "--nats-url", nats).ok(t)
	if r := engined(t, "doctor", "--verify", "--database-url", db).ok(t); !strings.Contains(r.out, "1 session with ") {
		t.Errorf("verify says %q", r.out)
	}
	engined(t, "migrate", "status", "--database-url", db).ok(t)
}

func TestANodeServesWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--worker", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	if _, err := cl.IngestBatch(t.Context(), "s", conversation(3), nil); err != nil {
		t.Fatal(err)
	}
	ready, err := cl.Ready(t.Context())
	if !ready.Ready || err != nil || !slices.ContainsFunc(ready.Checks, func(c client.Check) bool {
		return c.Name == "nats" && !c.OK && !c.Required && strings.Contains(c.Detail, "compactions wait")
	}) {
		t.Errorf("%+v, %v", ready, err)
	}
	for _, cmd := range []string{"doctor", "health"} {
		if got := engined(t, cmd, "--url", n.url); !strings.Contains(got.out, "compactions wait") {
			t.Errorf("%s says nothing of NATS: %s", cmd, got.out)
		}
	}
	if got := engined(t, "health", "--live", "--json", "--url", n.url).ok(t); strings.Contains(got.out, `"ready"`) {
		t.Errorf("not asked and told: %s", got.out)
	}
}

func TestKeysOpenTheirTenantOnly(t *testing.T) {
	t.Parallel()
	n := serveIn(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--keys", "one=acme,two=umbrella", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	one := clientOf(t, n.url, "one")
	if _, err := one.IngestBatch(t.Context(), "s", conversation(2), nil); err != nil {
		t.Fatal(err)
	}
	if got := engined(t, "show", "s", "--url", n.url, "--key", "two"); got.code != exitFailure || !strings.Contains(got.err, "404") {
		t.Errorf("another tenant: %+v", got)
	}
	got := engined(t, "show", "s", "--url", n.url)
	if got.code != exitFailure || !strings.Contains(got.err, "401") || !strings.Contains(got.err, "Hint: give an API key") {
		t.Errorf("no key: %+v", got)
	}
	engined(t, "show", "s", "--url", n.url, "--key", "one").ok(t)
}

func TestNoMigrateRefusesAnotherSchema(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	got := engined(t, "serve", "--no-migrate", "--listen", "127.0.0.1:0", "--database-url", db)
	if got.code != exitFailure || !strings.Contains(got.err, "engined migrate up") {
		t.Errorf("%+v", got)
	}
	if got := engined(t, "migrate", "status", "--database-url", db); got.code != exitFailure || !strings.Contains(got.out, "pending") {
		t.Errorf("status: %+v", got)
	}
	if got := engined(t, "doctor", "--database-url", db, "--nats-url", "nats://127.0.0.1:1"); got.code != exitFailure || !strings.Contains(got.out, "fix: engined migrate up") {
		t.Errorf("doctor: %+v", got)
	}
	engined(t, "migrate", "up", "--database-url", db).ok(t)
	engined(t, "migrate", "status", "--database-url", db).ok(t)
}

func TestAnEndClosesStreams(t *testing.T) {
	t.Parallel()
	n := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--database-url", testdb.New(t))
	cl := clientOf(t, n.url, "")
	if _, err := cl.IngestBatch(t.Context(), "s", conversation(1), nil); err != nil {
		t.Fatal(err)
	}
	seen, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- cl.Stream(t.Context(), "s", 0, func(client.Event) error { seen <- struct{}{}; return nil })
	}()
	select {
	case <-seen:
	case err := <-ended:
		t.Fatalf("the stream ended: %v", err)
	}
	n.end(t)
	if err := <-ended; err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://")); err == nil {
		t.Error("the port is still open")
	}
}

func TestTheDemoHolds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs the whole cycle")
	}
	n := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--database-url", testdb.New(t))
	got := engined(t, "demo", "--url", n.url).ok(t)
	for _, want := range []string{"all 914 messages come back byte for byte", "adds nothing", "All of it holds"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it does not say %q:\n%s", want, got.out)
		}
	}
}

func clientOf(t *testing.T, url, key string) *client.Client {
	t.Helper()
	cl, err := client.New(url, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// conversation is n exchanges of some length.
func conversation(n int) []json.RawMessage {
	var out []json.RawMessage
	for i := range n {
		out = append(
			out,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"Question %d: %s?"}`, i, strings.Repeat("why is that so ", 10))),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":"Answer %d: %s."}`, i, strings.Repeat("because it was decided ", 10))),
		)
	}
	return out
}

func awaitSession(t *testing.T, cl *client.Client, key string, enough func(client.Session) bool) client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := cl.Session(ctx, key)
		if err != nil {
			t.Fatalf("session %s: %v", key, err)
		}
		if enough(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("session %s stays as it is: %s", key, s.Raw)
		}
	}
}
