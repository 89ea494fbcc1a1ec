package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

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
