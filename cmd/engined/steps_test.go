package main

import (
	"strings"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

func TestStepsMoveTheWindowAndTheLogStays(t *testing.T) {
	t.Parallel()
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--database-url", testdb.Empty(t), "--nats-url", "nats://127.0.0.1:1")
	if _, err := clientOf(t, n.url, "").IngestBatch(t.Context(), "s", conversation(4), nil); err != nil {
		t.Fatal(err)
	}
	on := func(args ...string) result { return engined(t, append(args, "--url", n.url)...) }
	shown := func() int { return strings.Count(on("window", "s", "--json", "--budget", "10000").ok(t).out, `"role"`) }
	all := shown()

	if got := on("rewind", "s", "--to", "2").ok(t); !strings.Contains(got.out, "Rewound: epoch 2") {
		t.Errorf("%s", got.out)
	}
	if got := shown(); got != 2 {
		t.Errorf("%d messages after a rewind to seq 2", got)
	}
	if got := on("reset", "s", "--keep-from", "2", "--reason", "new topic").ok(t); !strings.Contains(got.out, "Reset: epoch 3") {
		t.Errorf("%s", got.out)
	}
	if got := shown(); got != 1 {
		t.Errorf("%d messages after a reset that keeps the second", got)
	}
	on("reset", "s").ok(t)
	if got := shown(); got != 0 {
		t.Errorf("%d messages after a reset", got)
	}
	log := on("events", "s").ok(t).out
	if got := strings.Count(log, "user") + strings.Count(log, "assistant"); got < all || !strings.Contains(log, "new topic") {
		t.Errorf("%d messages were stored; the log shows\n%s", all, log)
	}
	if got := on("maintain", "s").ok(t); !strings.Contains(got.out, "Nothing to do") {
		t.Errorf("%s", got.out)
	}
	for _, args := range [][]string{{"rewind", "s"}, {"rewind", "s", "--to", "0"}, {"reset", "s", "--keep-from", "0"}, {"fork", "s", "n", "--at", "0"}} {
		if got := on(args...); got.code != exitUsage || got.err == "" {
			t.Errorf("%v: exit code %d, %s", args, got.code, got.err)
		}
	}
	for _, args := range [][]string{{"rewind", "s", "--to", "99"}, {"reset", "nobody"}} {
		if got := on(args...); got.code != exitFailure || got.err == "" {
			t.Errorf("%v: exit code %d, %s", args, got.code, got.err)
		}
	}
}
