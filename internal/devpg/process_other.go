//go:build !linux

package devpg

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal does nothing: only Linux tells a child of its parent's death.
// Elsewhere the next start shuts the orphan down.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

func inheritDir(*exec.Cmd, string) (*os.File, string, error) {
	return nil, "", errors.ErrUnsupported
}

// servesDir tells whether pid is a Postgres server started on pgdata, by its
// command line.
func servesDir(pid int, pgdata string) bool {
	out, err := exec.Command("ps", "-p", strconv.Itoa(pid), "-o", "command=").Output()
	if err != nil {
		return false
	}
	line := string(out)
	return strings.Contains(line, "postgres") && strings.Contains(line, " -D "+pgdata)
}

// serversOf cannot be told without /proc; Postgres' own interlock on shared
// memory remains.
func serversOf(string) []int { return nil }
