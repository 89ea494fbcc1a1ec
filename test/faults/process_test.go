package faults

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

// process is one engined.
type process struct {
	name string
	args []string
	url  string
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when it has ended
}

// launch starts the program and does not wait until it is ready.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, args: args, cmd: exec.Command(path, args...), out: newOutput(), done: make(chan struct{})}
	p.cmd.Env = cleanEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the state says how it ended
		close(p.done)
	}()
	t.Cleanup(func() {
		p.signal(t, syscall.SIGKILL)
		<-p.done
		if t.Failed() {
			t.Logf("%s %s said at last:\n%s", p.name, p.args[0], p.out.tail(40))
		}
	})
	return p
}

// start launches the program and waits until it says that it is ready.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := launch(t, name, args...)
	p.ready(t)
	return p
}

var (
	readyLine = regexp.MustCompile(`(?m)^engined (worker )?is ready.*$`)
	nodeURL   = regexp.MustCompile(`http://\S+`)
)

func (p *process) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { // an end is not waited out
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	line, ok := p.out.await(ctx, readyLine)
	if !ok {
		t.Fatalf("%s is not ready:\n%s", p.name, p.out.tail(40))
	}
	p.url = nodeURL.FindString(line)
}

// signal sends to the process unless it has ended.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.name, err)
	}
}

// kill ends the process without a word to it.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	happens(t, p.name+" dies", p.done)
}

// end asks the process to end, as a supervisor does, and expects an orderly end.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	happens(t, p.name+" ends", p.done)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s: exit code %d\n%s", p.name, code, p.out.tail(20))
	}
	quiet(t, p, "level=WARN")
}

// again starts a process anew, a node on the address that it had.
func (p *process) again(t *testing.T) *process {
	t.Helper()
	return start(t, p.name, p.args...)
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

func (o *output) await(ctx context.Context, pattern *regexp.Regexp) (string, bool) {
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

func (o *output) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
