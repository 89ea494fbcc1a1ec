package main

import (
	"strings"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

func TestForkBeginsASession(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(3), nil); err != nil {
		t.Fatal(err)
	}
	window := func(args ...string) string {
		return engined(t, append([]string{"window", "--json", "--budget", "10000", "--url", n.url}, args...)...).ok(t).out
	}
	messages := func(out string) string {
		_, rest, _ := strings.Cut(out, `"messages":`)
		all, _, _ := strings.Cut(rest, `"estimatedTokens"`)
		return all
	}
	if got := engined(t, "fork", "s", "f", "--url", n.url).ok(t); !strings.Contains(got.out, "Forked: f") {
		t.Errorf("%s", got.out)
	}
	engined(t, "fork", "s", "early", "--at", "2", "--url", n.url).ok(t)
	if got, want := messages(window("f")), messages(window("s")); got != want || !strings.Contains(got, "role") {
		t.Errorf("fork %s\nparent %s", got, want)
	}
	if got, want := messages(window("early")), messages(window("s", "--as-of", "2")); got != want || !strings.Contains(got, "role") {
		t.Errorf("fork %s\nparent %s", got, want)
	}
	if got := engined(t, "events", "f", "--url", n.url).ok(t); !strings.Contains(got.out, "from s at seq") {
		t.Errorf("%s", got.out)
	}
	for _, args := range [][]string{{"fork", "s", "f"}, {"fork", "s", "n", "--at", "99"}, {"fork", "s", "n", "--at", "0"}, {"fork", "nobody", "n"}} {
		if got := engined(t, append(args, "--url", n.url)...); got.code == exitOK || got.err == "" {
			t.Errorf("%v: exit code %d, %s", args, got.code, got.err)
		}
	}
}
