package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/engined/engined/internal/devpg"
)

const (
	// envKeeper makes a test binary the keeper of the cluster in a directory.
	envKeeper = "ENGINED_TESTDB_KEEPER"
	// readyFD is the pipe on which the keeper says sayReady and the DSN, or why
	// there is none.
	readyFD  = 3
	sayReady = "ready "
	// linger is how long a cluster without users is kept while the go command
	// that used it still runs: it may be compiling the next package.
	linger    = time.Minute
	watchTick = 200 * time.Millisecond
)

// init takes over a process that was started to be the keeper: it must not
// reach the tests of whichever package's binary it is.
func init() {
	if dir := os.Getenv(envKeeper); dir != "" {
		os.Exit(keep(dir))
	}
}

// keep runs the cluster until nobody uses it.
func keep(dir string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	syscall.CloseOnExec(readyFD) // The server would keep it open, and the reader waiting.
	pipe := os.NewFile(readyFD, "ready")
	users, c, err := open(ctx, dir)
	if err != nil {
		fmt.Fprint(pipe, err)
		pipe.Close()
		return 1
	}
	fmt.Fprint(pipe, sayReady+c.DSN("postgres"))
	pipe.Close()

	k := keeper{dir: dir, users: users, linger: linger}
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-c.Done(): // Crashed; the next process to come starts another.
			return exit(c)
		case <-ctx.Done():
			return exit(c)
		case now := <-tick.C:
			if k.unused(now) {
				return exit(c) | remove(dir)
			}
		}
	}
}

func exit(c *devpg.Cluster) int {
	if err := c.Stop(context.Background()); err != nil {
		return 1
	}
	return 0
}

// remove is called under the exclusive lock: whoever comes meanwhile waits for
// it, and then finds no directory. It goes by one rename, since a newcomer
// could lock a file in a directory that is half removed.
func remove(dir string) int {
	gone := dir + ".gone-" + strconv.Itoa(os.Getpid())
	if err := errors.Join(os.Rename(dir, gone), os.RemoveAll(gone)); err != nil {
		return 1
	}
	return 0
}

// open starts a cluster beside what killed keepers left, which it removes.
func open(ctx context.Context, dir string) (*os.File, *devpg.Cluster, error) {
	users, err := os.OpenFile(filepath.Join(dir, usersFile), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	left, _ := filepath.Glob(filepath.Join(dir, clusterDir+"*")) // The only error is a bad pattern.
	for _, old := range left {
		if err := os.RemoveAll(old); err != nil {
			return nil, nil, err
		}
	}
	data, err := os.MkdirTemp(dir, clusterDir)
	if err != nil {
		return nil, nil, err
	}
	c, err := devpg.Start(ctx, devpg.Options{
		DataDir: data, Fast: true, Ephemeral: true, MaxConnections: maxConnections, Settings: settings(),
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(data))
	}
	tmp := filepath.Join(data, dsnFile)
	err = errors.Join(os.WriteFile(tmp, []byte(c.DSN("postgres")), 0o600), os.Rename(tmp, filepath.Join(dir, dsnFile)))
	if err != nil {
		return nil, nil, errors.Join(err, c.Stop(ctx))
	}
	return users, c, nil
}

// keeper decides when a cluster has served.
type keeper struct {
	dir    string
	users  *os.File
	linger time.Duration
	idle   time.Time
}

// unused tells whether to end, and holds the exclusive lock if so: there is no
// user, and either no go command that had some, or none came back in time.
func (k *keeper) unused(now time.Time) bool {
	if flock(k.users, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		k.idle = time.Time{}
		return false
	}
	if k.idle.IsZero() {
		k.idle = now
	}
	if now.Sub(k.idle) >= k.linger || !k.awaited() {
		return true
	}
	_ = flock(k.users, syscall.LOCK_UN) // Nothing can be done; the next tick tries again.
	return false
}

// awaited tells whether a go command whose tests used the cluster still runs.
func (k *keeper) awaited() bool {
	entries, err := os.ReadDir(filepath.Join(k.dir, parentsDir))
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid <= 1 {
			continue
		}
		if err := syscall.Kill(pid, 0); err == nil || errors.Is(err, syscall.EPERM) {
			return true
		}
	}
	return false
}
