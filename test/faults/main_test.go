package faults

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait of a test; it is no expectation.
const patience = 2 * time.Minute

// Settings of a run.
const (
	// envSeconds is how long a test keeps breaking things.
	envSeconds = "ENGINED_FAULT_SECONDS"
	// envRace, if set, builds the program with the race detector.
	envRace = "ENGINED_FAULT_RACE"
)

// scratch holds the program; it ends with the run.
var scratch string

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
			if scratch != "" {
				_ = os.RemoveAll(scratch)
			}
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

// binary is the program, built once a run.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "engined-faults-")
	if err != nil {
		return "", err
	}
	scratch = dir
	path := filepath.Join(dir, "engined")
	args := []string{"build", "-o", path}
	if os.Getenv(envRace) != "" {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/engined/engined/cmd/engined")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build engined: %w\n%s", err, out.String())
	}
	return path, nil
})

// await polls until done or the end of patience.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
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

// happens waits for a channel to close.
func happens(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}
