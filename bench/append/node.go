package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// node is a running `engined serve`, without a worker and without NATS.
type node struct {
	cmd  *exec.Cmd
	addr string // host:port
	log  *os.File
}

func startNode(ctx context.Context, program, dsn, logPath string) (*node, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%w; build it with make build", err)
	}
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", "--insecure", "--listen", "127.0.0.1:0", "--database-url", dsn, //nolint:noctx // it outlives ctx, to be stopped in order
		"--nats-url", "nats://127.0.0.1:1", "--log-level", "error")
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	n := &node{cmd: cmd, log: log}
	line := make(chan string, 1)
	go func() {
		r := bufio.NewReader(out)
		s, _ := r.ReadString('\n')
		line <- s
		_, _ = io.Copy(io.Discard, r)
	}()
	select {
	case s := <-line:
		_, addr, ok := strings.Cut(strings.TrimSpace(s), "http://")
		if !ok {
			said, _ := os.ReadFile(logPath)
			return nil, errors.Join(fmt.Errorf("%s serve did not start: %s%s", program, s, said), n.stop())
		}
		n.addr = addr
		return n, nil
	case <-time.After(time.Minute):
		return nil, errors.Join(errors.New("the node does not start"), n.stop())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), n.stop())
	}
}

func (n *node) stop() error {
	defer n.log.Close()
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.cmd.Wait() // after a signal its status says nothing
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(20 * time.Second):
		err := errors.Join(errors.New("the node had to be killed"), n.cmd.Process.Kill())
		<-ended
		return err
	}
}
