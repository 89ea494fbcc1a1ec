package devpg

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func setDeathSignal(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }

// inheritDir lets the child use a directory whose parents are closed to it:
// it inherits the open directory and names it by descriptor.
func inheritDir(cmd *exec.Cmd, dir string) (*os.File, string, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, "", err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return f, fmt.Sprintf("/proc/self/fd/%d", 2+len(cmd.ExtraFiles)), nil
}

// servesDir tells whether pid is a Postgres process that works in pgdata: each
// of them has it as its working directory.
func servesDir(pid int, pgdata string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil || cwd != pgdata {
		return false
	}
	// A title is "postgres: writer" and the like, but comm stays.
	comm, err := os.ReadFile(filepath.Join(proc, "comm"))
	return err == nil && strings.HasPrefix(string(comm), "postgres") && !isZombie(proc)
}

func isZombie(proc string) bool {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

// serversOf lists the Postgres processes that work in pgdata.
func serversOf(pgdata string) []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && servesDir(pid, pgdata) {
			pids = append(pids, pid)
		}
	}
	return pids
}
