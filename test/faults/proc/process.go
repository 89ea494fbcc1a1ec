// Package proc runs the real engined as child processes of a test: it builds
// the program once a run, starts, signals and kills it, and listens to what it
// says.
package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one engined.
type Process struct {
	Name string
	// Args are those that it was started with, the subcommand first.
	Args []string
	// URL is where a node serves, once it is ready.
	URL string
	Out *Output
	// Done is closed when it has ended.
	Done chan struct{}

	path string
	cmd  *exec.Cmd
}

// Launch starts the program and does not wait until it is ready.
func Launch(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	path, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	return LaunchOther(t, path, name, args...)
}

// LaunchOther launches another program than the one of this tree, such as an
// earlier version of it.
func LaunchOther(t testing.TB, path, name string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: name, Args: args, path: path, cmd: exec.Command(path, args...), Out: NewOutput(), Done: make(chan struct{})} //nolint:noctx // ended by signals
	p.cmd.Env = cleanEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.Out, p.Out
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the state says how it ended
		close(p.Done)
	}()
	t.Cleanup(func() {
		p.Signal(t, syscall.SIGKILL)
		<-p.Done
		if t.Failed() {
			t.Logf("%s %s said at last:\n%s", p.Name, p.Args[0], p.Out.Tail(40))
		}
	})
	return p
}

// Start launches the program and waits until it says that it is ready.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	p := Launch(t, name, args...)
	p.Ready(t)
	return p
}

var (
	readyLine = regexp.MustCompile(`(?m)^engined (worker )?is ready.*$`)
	nodeURL   = regexp.MustCompile(`http://\S+`)
)

func (p *Process) Ready(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	go func() { // an end is not waited out
		select {
		case <-p.Done:
			cancel()
		case <-ctx.Done():
		}
	}()
	line, ok := p.Out.Await(ctx, readyLine)
	if !ok {
		t.Fatalf("%s is not ready:\n%s", p.Name, p.Out.Tail(40))
	}
	p.URL = nodeURL.FindString(line)
}

// Signal sends to the process unless it has ended.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.Name, err)
	}
}

// Kill ends the process without a word to it.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	Happens(t, p.Name+" dies", p.Done)
}

// End asks the process to end, as a supervisor does, and expects an orderly end.
func (p *Process) End(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	Happens(t, p.Name+" ends", p.Done)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s: exit code %d\n%s", p.Name, code, p.Out.Tail(20))
	}
	p.Quiet(t, "level=WARN")
}

// Again starts a process anew, a node on the address that it had.
func (p *Process) Again(t testing.TB) *Process {
	t.Helper()
	next := LaunchOther(t, p.path, p.Name, p.Args...)
	next.Ready(t)
	return next
}

// ExitCode waits for a process that ends by itself.
func (p *Process) ExitCode(t testing.TB) int {
	t.Helper()
	Happens(t, p.Name+" ends", p.Done)
	return p.cmd.ProcessState.ExitCode()
}

// Quiet fails the test where the process logged what an operator would look at.
func (p *Process) Quiet(t testing.TB, patterns ...string) {
	t.Helper()
	for line := range strings.SplitSeq(p.Out.String(), "\n") {
		for _, bad := range append(patterns, "level=ERROR", "panic", "DATA RACE") {
			if strings.Contains(line, bad) {
				t.Errorf("%s says: %s", p.Name, line)
			}
		}
	}
}

// cleanEnv is the environment without what configures engined.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ENGINED_") && !strings.HasPrefix(kv, "DATABASE_URL=") {
			env = append(env, kv)
		}
	}
	return env
}

// Output is a writer on whose text a test can wait.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

// NewOutput makes an empty one.
func NewOutput() *Output { return &Output{more: make(chan struct{}, 1)} }

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *Output) Await(ctx context.Context, pattern *regexp.Regexp) (string, bool) {
	for {
		if m := pattern.FindString(o.String()); m != "" {
			return m, true
		}
		select {
		case <-o.more:
		case <-ctx.Done():
			return "", false
		}
	}
}

func (o *Output) Tail(lines int) string {
	all := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
