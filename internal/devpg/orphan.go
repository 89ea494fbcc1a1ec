package devpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pollInterval = 20 * time.Millisecond
	// fastTimeout bounds a fast shutdown (it writes a checkpoint); quitTimeout
	// what follows it, an immediate one, which the next start recovers from.
	fastTimeout = 30 * time.Second
	quitTimeout = 10 * time.Second
)

// clearOrphan makes the way free for a new server on a directory whose lock we
// hold: a live server of this directory lost its engined and is shut down; a
// pid file whose number now belongs to another process is removed, since
// Postgres itself would take that process for a server.
func clearOrphan(ctx context.Context, pgdata string, log *slog.Logger) error {
	file := filepath.Join(pgdata, "postmaster.pid")
	pid, err := readPID(file)
	if errors.Is(err, fs.ErrNotExist) {
		return awaitEmpty(ctx, pgdata)
	}
	if err != nil {
		return err
	}
	switch {
	case servesDir(pid, pgdata):
		log.Info("shutting down the Postgres server an earlier run left", "pid", pid)
		if err := stopOrphan(ctx, pid, pgdata); err != nil {
			return err
		}
	case pid > 0 && alive(pid):
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return awaitEmpty(ctx, pgdata)
}

func readPID(file string) (int, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	// An empty file is a crash's; 0 is nobody's pid.
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	return pid, nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

func stopOrphan(ctx context.Context, pid int, pgdata string) error {
	gone := func() bool { return !servesDir(pid, pgdata) }
	for _, step := range []struct {
		signal  syscall.Signal
		timeout time.Duration
	}{{syscall.SIGINT, fastTimeout}, {syscall.SIGQUIT, quitTimeout}} {
		if err := syscall.Kill(pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the Postgres server an earlier run left (pid %d): %w", pid, err)
		}
		if await(ctx, step.timeout, gone) {
			return nil
		}
	}
	return fmt.Errorf("the Postgres server an earlier run left (pid %d) does not stop", pid)
}

// awaitEmpty waits for processes that outlive a killed server by a moment.
func awaitEmpty(ctx context.Context, pgdata string) error {
	if await(ctx, quitTimeout, func() bool { return len(serversOf(pgdata)) == 0 }) {
		return nil
	}
	return fmt.Errorf("%w: Postgres processes %v still work in %s", ErrInUse, serversOf(pgdata), pgdata)
}

// await polls cond until it holds, the timeout passes or ctx is done.
func await(ctx context.Context, timeout time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-ctx.Done():
			return cond()
		case <-tick.C:
		}
	}
}
