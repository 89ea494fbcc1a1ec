package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/engined/engined/internal/testdb"
)

// reachable is a directory that the user Postgres runs as can enter.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engined-dev-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDevServesTheSameDataAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Postgres three times")
	}
	data := filepath.Join(reachable(t), "data")
	chat := filepath.Join(t.TempDir(), "chat.json")
	writeFile(t, chat, `[{"role":"user","content":"remember 4711"},{"role":"assistant","content":"noted"}]`)

	first := program(t, "dev", "--listen", "127.0.0.1:0", "--data", data)
	engined(t, "import", chat, "--session", "s", "--url", first.url).ok(t)
	if got := engined(t, "dev", "--listen", "127.0.0.1:0", "--data", data); got.code != exitFailure || !strings.Contains(got.err, "another engined runs on the data directory") {
		t.Errorf("a second dev on one directory: %+v", got)
	}
	first.kill(t)

	second := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", data)
	if _, said := second.out.await(t.Context(), `psql 'postgres://[^']+'\n`); !said {
		t.Errorf("the banner does not say how to reach Postgres: %s", second.out)
	}
	console := second.url + "/console/"
	if _, said := second.out.await(t.Context(), regexp.QuoteMeta(console)+`\n`); !said || fetch(t, console) != http.StatusOK {
		t.Errorf("the banner names no console that is there: %s", second.out)
	}
	got := engined(t, "window", "s", "--url", second.url).ok(t)
	if !strings.Contains(got.out, "remember 4711") || !strings.Contains(got.out, "noted") {
		t.Errorf("after a kill the window is\n%s", got.out)
	}
	if got := engined(t, "import", chat, "--session", "s", "--url", second.url).ok(t); !strings.Contains(got.out, " 0 ") {
		t.Errorf("importing again:\n%s", got.out)
	}
	second.end(t)

	third := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", data, "--console=false")
	if strings.Contains(third.out.String(), "console") || fetch(t, third.url+"/console/") != http.StatusNotFound {
		t.Errorf("a console that is switched off: %s", third.out)
	}
	if got := engined(t, "window", "s", "--url", third.url).ok(t); !strings.Contains(got.out, "remember 4711") {
		t.Errorf("after an orderly end the window is\n%s", got.out)
	}
}

// fetch answers with the status of a GET.
func fetch(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestDevLeavesAForeignDirectoryAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "thesis.txt"), "years of work")
	got := engined(t, "dev", "--listen", "127.0.0.1:0", "--data", dir)
	if got.code != exitFailure || !strings.Contains(got.err, "not empty (it holds thesis.txt)") {
		t.Errorf("%+v", got)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
		t.Errorf("the directory was touched: %v %v", found, err)
	}
	for name, want := range map[string]bool{"lost+found": true, lockName: true, "postgres": false} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, name), "")
		if err := checkForeign(dir); (err == nil) != want {
			t.Errorf("a directory with %s: %v", name, err)
		}
	}
	if err := checkForeign(filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
}

func TestDevTellsThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := filepath.Join(t.TempDir(), "data")
	got := engined(t, "dev", "--listen", l.Addr().String(), "--data", data)
	if got.code != exitFailure || !strings.Contains(got.err, "is taken") || !strings.Contains(got.err, "--listen") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

func TestDevOnADatabaseOfOnesOwn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", data, "--database-url", testdb.Empty(t))
	if _, err := os.Stat(postgresDir(data)); !os.IsNotExist(err) {
		t.Errorf("a private Postgres was made: %v", err)
	}
	if !strings.Contains(r.out.String(), "curl -s "+r.url) || !strings.Contains(r.out.String(), data) {
		t.Errorf("the banner is\n%s", r.out)
	}
	engined(t, "health", "--url", r.url).ok(t)
}

// child is the program in a process of its own.
type child struct {
	url string
	cmd *exec.Cmd
	err *output
}

func program(t *testing.T, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := newOutput()
	c := &child{cmd: exec.Command(exe, args...), err: newOutput()}
	c.cmd.Env = append(withoutSettings(), envProgram+"=1")
	c.cmd.Stdout, c.cmd.Stderr = out, c.err
	c.cmd.WaitDelay = patience // a Postgres may hold the pipes for a moment
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	ctx := t.Context()
	line, ready := out.await(ctx, `http://\S+`)
	if !ready {
		t.Fatalf("it is not ready\nstdout: %s\nstderr: %s", out, c.err)
	}
	c.url = line
	return c
}

// withoutSettings is the environment without what configures engined.
func withoutSettings() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ENGINED_") && !strings.HasPrefix(kv, "DATABASE_URL=") {
			env = append(env, kv)
		}
	}
	return env
}

func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // "signal: killed"
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
