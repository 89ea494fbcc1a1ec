package faults

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/test/faults/proc"
)

// envSeconds is how long a test keeps breaking things.
const envSeconds = "ENGINED_FAULT_SECONDS"

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for processes more than they compute.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("4")
	}
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(
		m,
		goleak.Cleanup(func(code int) {
			proc.RemoveBinary()
			os.Exit(code)
		}),
		// A stream that is being created while its server shuts down keeps its
		// file store open.
		goleak.IgnoreTopFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(server+"/ats.Register.func1"),
	)
}

// begin starts a fault test: beside the others, and not in a short run.
func begin(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the program as several processes")
	}
	t.Parallel()
}

// span is how long a test keeps up its load: 4 s, or what the environment says.
func span(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(envSeconds)
	if text == "" {
		return 4 * time.Second
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of seconds", envSeconds, text)
	}
	return time.Duration(n) * time.Second
}

// await polls until done or the end of proc.Patience.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(proc.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
