package devpg

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// child says how to start one of the server's programs.
type child struct {
	path    string
	args    []string
	dataDir string
	id      identity
	stdout  io.Writer
	// deathSignal is what the program gets when this process dies (Linux).
	deathSignal syscall.Signal
}

// process is a started child.
type process struct {
	cmd *exec.Cmd
	// done is closed when the child has ended; err is set by then.
	done chan struct{}
	err  error
}

func (p *process) signal(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // The only failure is that it has ended.
}

// spawn starts the child under the server's user with -D dataDir.
func spawn(c child) (*process, error) {
	cmd := exec.Command(c.path) //nolint:noctx // outlives the start's context and is stopped by signals
	// Somebody's PGDATA or PGPORT must not steer a private server.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "TMPDIR=" + os.TempDir(), "LC_ALL=C.UTF-8"}
	// The caller's directory may be closed to the server's user.
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = c.stdout, c.stdout
	// A session of its own, or Ctrl-C in the terminal would stop the server
	// before those who still write to it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.id.credential(), Setsid: true}
	setDeathSignal(cmd.SysProcAttr, c.deathSignal)

	dir := c.dataDir
	if blocked := c.id.blockedBy(dir); blocked != "" {
		handle, path, err := inheritDir(cmd, dir)
		if err != nil {
			return nil, fmt.Errorf("user %s, whom Postgres runs as since it refuses root, cannot enter %s; "+
				"choose a data directory elsewhere or run chmod o+x %s: %w", c.id.name, blocked, blocked, err)
		}
		defer handle.Close()
		dir = path
	}
	cmd.Args = append([]string{c.path, "-D", dir}, c.args...)

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal is sent when the thread that forked ends, so that
		// thread must live as long as the child. It is not unlocked: it ends
		// with this goroutine.
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("start %s: %w", c.path, err)
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}
