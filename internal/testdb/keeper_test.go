package testdb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessesShareOneClusterThatEndsAfterThem(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp("", "testdb-") // t.TempDir is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil {
		t.Fatal(err)
	}

	// The shell stands for the go command: when it ends, the run is over.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `"$0" & "$0" & "$0" & wait`, exe)
	cmd.Env = append(os.Environ(), envHelper+"=1", "TMPDIR="+tmp, "DATABASE_URL=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 || strings.HasPrefix(lines[0], "error") || lines[0] != lines[1] || lines[1] != lines[2] {
		t.Fatalf("three processes saw\n%s", out)
	}

	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		left, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline.Done():
			t.Fatalf("the cluster outlives its users: %v", left)
		case <-time.After(watchTick):
		}
	}
}

func TestKeeperEndsWhenNobodyComesBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shared")
	member, err := enter(dir)
	if err != nil {
		t.Fatal(err)
	}
	users, err := os.OpenFile(filepath.Join(dir, usersFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	k := keeper{dir: dir, users: users, linger: linger}
	now := time.Now()
	if k.unused(now.Add(2 * linger)) {
		t.Fatal("ended under a user")
	}

	// The parent, the go command, is there: it may be compiling.
	leave(t, member)
	if k.unused(now) {
		t.Fatal("ended although the go command may start another package")
	}
	if member, err = enter(dir); err != nil {
		t.Fatal(err)
	}
	if k.unused(now.Add(linger)) {
		t.Fatal("ended under a second user")
	}
	leave(t, member)
	if k.unused(now.Add(linger)) {
		t.Fatal("the time without users was counted through a user")
	}
	if !k.unused(now.Add(2 * linger)) {
		t.Fatal("waits for ever")
	}
	if err := syscall.Flock(int(users.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}

	// Without the go command there is nobody to wait for.
	parent := filepath.Join(dir, parentsDir, strconv.Itoa(os.Getppid()))
	if err := os.Rename(parent, filepath.Join(dir, parentsDir, "999999999")); err != nil {
		t.Fatal(err)
	}
	k.idle = time.Time{}
	if !k.unused(now) {
		t.Fatal("waits for a go command that is gone")
	}
	if remove(dir) != 0 {
		t.Fatal("the directory could not be removed")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// leave ends a membership at once: a process that another test is forking right
// now holds a copy of the open file until it executes.
func leave(t *testing.T, member *os.File) {
	t.Helper()
	if err := errors.Join(flock(member, syscall.LOCK_UN), member.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(dir); err == nil {
		t.Error("a directory that everybody may write was taken")
	}
	link := dir + "-link"
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(link); err == nil {
		t.Error("a symbolic link was taken")
	}
}
