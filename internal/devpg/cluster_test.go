package devpg

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDataOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data") // Closed to others: as root, the server's user cannot walk there.
	c := start(t, dir)
	dsn, err := c.EnsureDatabase(t.Context(), "engined")
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, dsn, "CREATE TABLE kept (v text); INSERT INTO kept VALUES ('上下文')")
	stop(t, c)
	stop(t, c) // A second stop is harmless.
	if _, err := os.Stat(c.SocketDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket directory is left: %v", err)
	}

	c = start(t, dir)
	again, err := c.EnsureDatabase(t.Context(), "engined")
	if err != nil {
		t.Fatal(err)
	}
	if again != dsn {
		t.Errorf("DSN changed over a restart:\n%s\n%s", dsn, again)
	}
	if got := querySQL(t, dsn, "SELECT v FROM kept"); got != "上下文" {
		t.Errorf("kept = %q", got)
	}
}

func TestClusterIsUTF8AndPrivate(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir())
	got := map[string]string{}
	for _, s := range []string{"server_encoding", "listen_addresses", "unix_socket_permissions", "TimeZone"} {
		got[s] = querySQL(t, c.DSN("postgres"), "SHOW "+s)
	}
	want := map[string]string{
		"server_encoding": "UTF8", "listen_addresses": "", "unix_socket_permissions": "0700", "TimeZone": "UTC",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	// Character classes beyond ASCII are what trigram search stands on.
	if got := querySQL(t, c.DSN("postgres"), "SELECT upper('é')"); got != "É" {
		t.Errorf("upper('é') = %q: the locale is not UTF-8", got)
	}
	for _, dir := range []string{c.SocketDir(), c.dir.pgdata()} {
		fi, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", dir, fi.Mode())
		}
		if owner, err := ownerOf(dir); err != nil || owner == 0 {
			t.Errorf("%s belongs to uid %d (%v)", dir, owner, err)
		}
	}
}

func TestSecondStartIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	if _, err := Start(t.Context(), Options{DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Fatalf("second Start = %v, want ErrInUse", err)
	}
	if got := querySQL(t, c.DSN("postgres"), "SELECT 'well'"); got != "well" {
		t.Error("the first cluster suffered")
	}
}

func TestFailureShowsTheServersLog(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{
		DataDir: t.TempDir(), Fast: true, Settings: map[string]string{"no_such_setting": "1"},
	})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Fatalf("Start = %v, want the server's own words", err)
	}
}

func TestEphemeralLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	c, err := Start(t.Context(), Options{DataDir: dir, Fast: true, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, c)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory is left: %v", err)
	}
}

// helper starts the test binary as another process that runs a cluster on dir.
func helper(t *testing.T, dir string, attr *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The go tool's build directory is closed to other users.
	bin := filepath.Join(openTemp(t), "helper")
	raw, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), envHelper+"="+dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for !bytes.Contains(said.Bytes(), []byte("\n")) {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if err != nil {
			break
		}
	}
	if !strings.HasPrefix(said.String(), "ready ") {
		t.Fatalf("helper said %q", said.String())
	}
	return cmd
}

// openTemp is a temporary directory that every user may enter.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "devpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
