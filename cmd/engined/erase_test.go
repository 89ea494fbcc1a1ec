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
	if r := run("--retention-idle", "1ns", "--dry-run").ok(t); !strings.Contains(r.out, "1 session would be erased") || !strings.Contains(r.out, " a ") {
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
