package devpg

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestKilledStarterLeavesItsDataUsable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	execSQL(t, c.DSN("postgres"), "CREATE TABLE kept AS SELECT 'yes'::text AS v")
	stop(t, c)

	cmd := helper(t, dir, nil)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// At once, while the helper's server may still be on its way out.
	c = start(t, dir)
	if got := querySQL(t, c.DSN("postgres"), "SELECT v FROM kept"); got != "yes" {
		t.Errorf("kept = %q", got)
	}
}

func TestOrphanedServerIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	execSQL(t, c.DSN("postgres"), "CREATE TABLE kept AS SELECT 'yes'::text AS v")
	stop(t, c)

	// A server that nobody's death stops, as on systems other than Linux. It needs
	// a socket, else it ends by itself, and in a path that sockets may have.
	sockets, err := os.MkdirTemp("", "orphan-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	if err := os.Chmod(sockets, 0o777); err != nil { // the server may run as another user
		t.Fatal(err)
	}
	id, err := serverIdentity(c.dir.pgdata())
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := spawn(child{
		path: c.bin.path("postgres"), dataDir: c.dir.pgdata(), id: id,
		args: []string{"-c", "listen_addresses=", "-c", "unix_socket_directories=" + sockets},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { orphan.signal(syscall.SIGKILL); <-orphan.done })
	pid := orphan.cmd.Process.Pid
	if !await(t.Context(), fastTimeout, func() bool {
		got, err := readPID(filepath.Join(c.dir.pgdata(), "postmaster.pid"))
		return err == nil && got == pid
	}) {
		t.Fatal("the orphan wrote no pid file")
	}
	if !await(t.Context(), fastTimeout, func() bool {
		found, err := filepath.Glob(filepath.Join(sockets, ".s.PGSQL.*"))
		return err == nil && len(found) > 0
	}) {
		t.Fatal("the orphan does not listen")
	}

	c = start(t, dir)
	select {
	case <-orphan.done:
	default:
		t.Error("the orphan still runs")
	}
	if got := querySQL(t, c.DSN("postgres"), "SELECT v FROM kept"); got != "yes" {
		t.Errorf("kept = %q", got)
	}
}

func TestKilledServerRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	execSQL(t, c.DSN("postgres"), "CREATE TABLE kept AS SELECT 'yes'::text AS v")
	execSQL(t, c.DSN("postgres"), "CHECKPOINT") // Commits are asynchronous here.
	c.proc.signal(syscall.SIGKILL)
	<-c.Done()
	stop(t, c)

	c = start(t, dir)
	if got := querySQL(t, c.DSN("postgres"), "SELECT v FROM kept"); got != "yes" {
		t.Errorf("kept = %q", got)
	}
}

func TestPidOfAnotherProcessIsNotBelieved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	stop(t, c)
	id, err := serverIdentity(c.dir.pgdata())
	if err != nil {
		t.Fatal(err)
	}

	// The server's user owns it, so Postgres alone would refuse to start.
	innocent := exec.Command("sleep", "600")
	innocent.SysProcAttr = &syscall.SysProcAttr{Credential: id.credential()}
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := innocent.Process.Kill(); err != nil {
			t.Errorf("the process whose pid was in the file is gone: %v", err)
		}
		_ = innocent.Wait()
	})
	stale := strconv.Itoa(innocent.Process.Pid) + "\n" + c.dir.pgdata() + "\n1700000000\n5432\n/nowhere\n\n  1  2\nready\n"
	file := filepath.Join(c.dir.pgdata(), "postmaster.pid")
	if err := os.WriteFile(file, []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := id.own(file); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}
