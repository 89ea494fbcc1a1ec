package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/testdb"
)

func TestRetentionListsThenErases(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	n := serve(t, "serve", "--worker", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	for _, key := range []string{"a", "b"} {
		if _, err := cl.IngestBatch(t.Context(), key, conversation(2), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cl.TakeLease(t.Context(), "b", "a gateway", time.Hour); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) result {
		return engined(t, append([]string{"retention", "--database-url", db}, args...)...)
	}
	if r := run(); r.code != exitUsage || !strings.Contains(r.err, "no retention is set") {
		t.Errorf("without a policy: %+v", r)
	}
	if r := run("--retention-idle", "90d").ok(t); !strings.Contains(r.out, "0 sessions erased") {
		t.Errorf("nothing is that old: %s", r.out)
	}
	if r := run("--retention-idle", "1ns", "--dry-run").ok(t); !strings.Contains(r.out, "1 session would be erased") || !strings.Contains(r.out, " a\n") {
		t.Errorf("dry run: %s", r.out)
	}
	if _, err := cl.Session(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if r := run("--retention-idle", "1ns", "--json").ok(t); !strings.Contains(r.out, `"sessionKey":"a"`) || !strings.Contains(r.out, `"erased":true`) {
		t.Errorf("erasure: %s", r.out)
	}
	if _, err := cl.Session(t.Context(), "a"); err == nil {
		t.Error("the expired session is still there")
	}
	if _, err := cl.Session(t.Context(), "b"); err != nil {
		t.Errorf("the leased session: %v", err)
	}
}

func TestRetentionBySizeShowsWhatItWouldDo(t *testing.T) {
	t.Parallel()
	db := testdb.Empty(t)
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db, "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	for _, key := range []string{"a", "b", "c"} {
		if _, err := cl.IngestBatch(t.Context(), key, conversation(4), nil); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) result {
		return engined(t, append([]string{"retention", "--database-url", db, "--retention-floor", "0s"}, args...)...)
	}
	// Other tests' transactions hold the count back.
	for !strings.Contains(run("--retention-size", "1B", "--dry-run").ok(t).out, "3 sessions would be erased") {
		time.Sleep(20 * time.Millisecond)
	}
	if r := run("--retention-size", "1B", "--retention-floor", "1d", "--dry-run").ok(t); !strings.Contains(r.out, "0 sessions would be erased") {
		t.Errorf("young sessions: %s", r.out)
	}
	engined(t, "tenants", "set", "default", "--keep", "1GiB", "--spend", "2.5", "--database-url", db).ok(t)
	if r := engined(t, "tenants", "list", "--database-url", db).ok(t); !strings.Contains(r.out, "$2.50") || !strings.Contains(r.out, "1.0 GiB") {
		t.Errorf("the limits: %s", r.out)
	}
	if r := run("--dry-run").ok(t); !strings.Contains(r.out, "0 sessions would be erased") {
		t.Errorf("with the tenant's own size: %s", r.out)
	}
	engined(t, "tenants", "unset", "default", "--database-url", db).ok(t)
	r := run("--retention-size", "1B", "--json").ok(t)
	if strings.Count(r.out, `"erased":true`) != 3 || !strings.Contains(r.out, `"rule":"size"`) || !strings.Contains(r.out, `"counts":{`) {
		t.Errorf("erasure: %s", r.out)
	}
	if left, _, err := cl.Sessions(t.Context(), "", 10); err != nil || len(left) > 0 {
		t.Errorf("%d sessions are left: %v", len(left), err)
	}
}

func TestEraseAsksAndTells(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--worker", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	cl := clientOf(t, n.url, "")
	for _, key := range []string{"u:1", "u:2", "v"} {
		if _, err := cl.IngestBatch(t.Context(), key, conversation(2), nil); err != nil {
			t.Fatal(err)
		}
	}
	// erase runs the command with an answer to its question.
	erase := func(answer string, args ...string) result {
		var out, err bytes.Buffer
		c := &cli{out: &out, err: &err, in: strings.NewReader(answer), lookupEnv: noEnv, now: frozen}
		code := c.run(t.Context(), append([]string{"erase", "--url", n.url}, args...))
		return result{code, out.String(), err.String()}
	}
	for _, no := range []string{"", "no\n", "y\n"} {
		if r := erase(no, "v"); r.code != exitFailure || !strings.Contains(r.err, "v with ") || !strings.Contains(r.err, "nothing was erased") {
			t.Errorf("answered %q: %+v", no, r)
		}
	}
	if r := erase("yes\n", "v").ok(t); !strings.Contains(r.out, "Erased: 1 session\n") || !strings.Contains(r.out, " events\n") {
		t.Errorf("receipt %q", r.out)
	}
	if r := erase("", "--yes", "v"); r.code != exitFailure || !strings.Contains(r.err, "404") {
		t.Errorf("erased again: %+v", r)
	}
	if r := erase("", "--yes", "--prefix", "--json", "u:").ok(t); !strings.Contains(r.out, `"erased":2`) {
		t.Errorf("receipt %q", r.out)
	}
}
