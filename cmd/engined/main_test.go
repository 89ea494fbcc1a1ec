package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// envProgram makes the test binary the program itself, for tests that kill it.
const envProgram = "ENGINED_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
	}
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(
		m,
		// A stream that is being created while its server shuts down keeps its
		// file store open.
		goleak.IgnoreTopFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(server+"/ats.Register.func1"),
	)
}

// patience bounds every wait of a test; it is no expectation.
const patience = 90 * time.Second

// noEnv is an environment in which nothing is set.
func noEnv(string) (string, bool) { return "", false }

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// engined runs a command line in this process, with an empty environment.
func engined(t *testing.T, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	c := &cli{out: &out, err: &err, lookupEnv: noEnv, now: frozen}
	code := c.run(t.Context(), args)
	return result{code, out.String(), err.String()}
}

// frozen is the time of tests that show ages.
func frozen() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// ok fails the test unless the command did what it should.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.code != exitOK {
		t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", r.code, r.out, r.err)
	}
	return r
}

// output is a writer on whose text a test can wait.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns the match of pattern once it is there.
func (o *output) await(ctx context.Context, pattern string) (string, bool) {
	re := regexp.MustCompile(pattern)
	for {
		if m := re.FindString(o.String()); m != "" {
			return m, true
		}
		select {
		case <-o.more:
		case <-ctx.Done():
			return "", false
		}
	}
}

// running is a command that serves, in this process.
type running struct {
	url      string
	out, err *output
	stop     context.CancelCauseFunc
	done     chan int
}

// openEnv is an environment in which nodes demand no keys.
func openEnv(name string) (string, bool) {
	if name == "ENGINED_INSECURE" {
		return "true", true
	}
	return "", false
}

// serve starts a command that serves, demands no keys, and waits until it is
// ready.
func serve(t *testing.T, args ...string) *running {
	t.Helper()
	return serveIn(t, openEnv, args...)
}

// serveIn does so in an environment.
func serveIn(t *testing.T, env func(string) (string, bool), args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	r := &running{out: newOutput(), err: newOutput(), stop: stop, done: make(chan int, 1)}
	c := &cli{out: r.out, err: r.err, lookupEnv: env}
	wait, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		r.done <- c.run(ctx, args)
		cancel()
	}()
	t.Cleanup(func() { r.end(t) })
	line, ready := r.out.await(wait, `ready[^\n]*\n`)
	if !ready {
		t.Fatalf("engined %s is not ready\nstdout: %s\nstderr: %s", args[0], r.out, r.err)
	}
	r.url = regexp.MustCompile(`https?://\S+`).FindString(line)
	return r
}

// end stops it as a signal does, once, and expects an orderly end.
func (r *running) end(t *testing.T) {
	t.Helper()
	if r.done == nil {
		return
	}
	r.stop(errSignal)
	select {
	case code := <-r.done:
		if code != exitOK {
			t.Errorf("exit code %d\nstderr: %s", code, r.err)
		}
	case <-time.After(patience):
		t.Errorf("it does not end\nstderr: %s", r.err)
	}
	r.done = nil
}
