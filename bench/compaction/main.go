package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	binary := flag.String("binary", "bin/engined", "the program to measure")
	size := flag.Int("tokens", 1_000_000, "size of the session, in tokens")
	budget := flag.Int("budget", 200_000, "its token budget")
	clients := flag.Int("clients", 4, "clients of other sessions, each one call at a time")
	idle := flag.Duration("idle", 15*time.Second, "how long their load runs before the compaction")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *binary, *size, *budget, *clients, *idle)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compaction:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, size, budget, clients int, idle time.Duration) (err error) {
	p, err := start(ctx, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	m := &measurement{url: p.url, pid: p.cmd.Process.Pid, budget: budget}
	if err := m.fill(ctx, size); err != nil {
		return fmt.Errorf("fill the session: %w", err)
	}
	if err := m.run(ctx, clients, idle); err != nil {
		return err
	}
	m.print(os.Stdout)
	return nil
}

// program is `engined dev` in a directory of its own.
type program struct {
	cmd *exec.Cmd
	dir string
	url string
}

func start(ctx context.Context, binary string) (*program, error) {
	dir, err := os.MkdirTemp("", "engined-bench-")
	if err != nil {
		return nil, err
	}
	// Postgres may run as another user, who has to get in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "dev", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--compact-timeout", "30m")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &program{cmd: cmd, dir: dir}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if p.url = regexp.MustCompile(`http://\S+`).FindString(lines.Text()); p.url != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s dev did not come up", binary), p.end())
}

func (p *program) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	return errors.Join(p.cmd.Wait(), os.RemoveAll(p.dir))
}
