package testdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// joinTimeout bounds finding or starting a server, a download included.
const joinTimeout = 8 * time.Minute

// The files of a shared cluster's directory.
const (
	usersFile  = "users"   // Locked shared by each test process, exclusively by a keeper that ends.
	startFile  = "start"   // Locked by the one process that starts a keeper.
	dsnFile    = "dsn"     // Where the running cluster is.
	parentsDir = "parents" // A file per go command whose tests use the cluster.
	clusterDir = "cluster-"
)

// join returns the DSN of the shared cluster, starting it where it is not
// running, and this process' lock on the users file, which makes it a user for
// as long as the file is open. The kernel closes it however the process ends.
func join(ctx context.Context) (dsn string, membership *os.File, err error) {
	dir, err := sharedDir()
	if err != nil {
		return "", nil, err
	}
	if membership, err = enter(dir); err != nil {
		return "", nil, fmt.Errorf("shared cluster %s: %w", dir, err)
	}
	dsn, err = locate(ctx, dir)
	return dsn, membership, err
}

// locate finds the cluster in dir or starts it; one process at a time does.
func locate(ctx context.Context, dir string) (string, error) {
	start, err := os.OpenFile(filepath.Join(dir, startFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer start.Close()
	if err := flock(start, syscall.LOCK_EX); err != nil {
		return "", err
	}
	if dsn, err := os.ReadFile(filepath.Join(dir, dsnFile)); err == nil && answers(ctx, string(dsn)) {
		return string(dsn), nil
	}
	return startKeeper(dir)
}

// sharedDir names the cluster by user, checkout and what chooses the binaries.
func sharedDir() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(root + "\x00" + os.Getenv("ENGINED_PG_BIN")))
	uid := os.Geteuid()
	return filepath.Join(scratch(), "engined-testdb-"+strconv.Itoa(uid)+"-"+hex.EncodeToString(sum[:5])), nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// enter makes the directory where absent and locks its users file. A keeper
// that ends removes the directory under its lock, so what was locked must
// still be what the path names.
func enter(dir string) (*os.File, error) {
	for {
		if err := claim(dir); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(filepath.Join(dir, usersFile), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f, syscall.LOCK_SH); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		locked, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if named, err := os.Stat(f.Name()); err == nil && os.SameFile(locked, named) {
			parent := filepath.Join(dir, parentsDir, strconv.Itoa(os.Getppid()))
			return f, os.WriteFile(parent, nil, 0o600)
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// claim makes the directory, or makes sure that the one there is ours: its
// name can be guessed by others.
func claim(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Removed meanwhile; the caller tries again.
	}
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() || int(st.Uid) != os.Geteuid() || fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory of this user's own; remove it", dir)
	}
	if err := os.Mkdir(filepath.Join(dir, parentsDir), 0o700); err != nil &&
		!errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func answers(ctx context.Context, dsn string) bool {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return false
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx)) == nil
}

// startKeeper runs this test binary once more, as the keeper, and waits for
// what it says on a pipe.
func startKeeper(dir string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd := exec.Command(exe) //nolint:noctx // outlives this process
	cmd.Env = append(os.Environ(), envKeeper+"="+dir)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{w}
	// Nothing of the go command's is inherited, or it would wait for the
	// keeper; and the terminal's Ctrl-C goes to the tests alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(cmd.Start(), w.Close())
	if err != nil {
		return "", fmt.Errorf("start the cluster's keeper: %w", err)
	}
	if err := cmd.Process.Release(); err != nil {
		return "", err
	}
	said, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	if dsn, ok := strings.CutPrefix(string(said), sayReady); ok {
		return dsn, nil
	}
	if len(said) == 0 {
		said = []byte("it ended without a word")
	}
	return "", errors.New(string(said))
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
