package devpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	pgdataName = "pgdata"
	// freshPrefix names a cluster that initdb has not finished. It has never
	// been served, so it may be removed.
	freshPrefix = "pgdata.new-"
	logName     = "postgres.log"
)

// dataDir is a locked directory of the package's layout.
type dataDir struct {
	path string
	// major is the Postgres version of the cluster; 0 means there is none yet.
	major int
	lock  *os.File
}

func (d dataDir) pgdata() string { return filepath.Join(d.path, pgdataName) }
func (d dataDir) log() string    { return filepath.Join(d.path, logName) }

// release gives the directory up. Closing alone would not always do: a process
// that is being forked right now holds a copy of the open file.
func (d dataDir) release() error {
	return errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN), d.lock.Close())
}

// openDataDir makes path where absent, refuses what is not ours, and locks it.
func openDataDir(path string) (dataDir, error) {
	if path == "" {
		return dataDir{}, errors.New("no data directory given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return dataDir{}, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return dataDir{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return dataDir{}, err
	}
	d := dataDir{path: path}
	// The directory itself carries the lock, so a refused one stays untouched.
	if d.lock, err = os.Open(path); err != nil {
		return dataDir{}, err
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return dataDir{}, fmt.Errorf("%w: another engined runs on %s", ErrInUse, path)
		}
		return dataDir{}, fmt.Errorf("lock %s: %w", path, err)
	}
	if d.major, err = readLayout(path); err != nil {
		return dataDir{}, errors.Join(err, d.release())
	}
	return d, nil
}

// readLayout returns the major version of the cluster in dir, 0 for a
// directory where one can be made, or why neither is so.
func readLayout(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	found := false
	var foreign []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == pgdataName:
			found = true
		case strings.HasPrefix(name, logName), strings.HasPrefix(name, freshPrefix), name == "lost+found":
		default:
			foreign = append(foreign, name)
		}
	}
	if !found {
		if len(foreign) > 0 {
			return 0, fmt.Errorf("%w: %s is not empty (it holds %s) and has no %s in it; give an empty or a new directory",
				ErrForeignDir, dir, strings.Join(foreign[:min(3, len(foreign))], ", "), pgdataName)
		}
		return 0, nil
	}
	pgdata := filepath.Join(dir, pgdataName)
	raw, err := os.ReadFile(filepath.Join(pgdata, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: %s has no PG_VERSION", ErrForeignDir, pgdata)
	}
	if err != nil {
		return 0, err
	}
	version := strings.TrimSpace(string(raw))
	major, err := strconv.Atoi(version)
	if err != nil || major < MinMajor {
		return 0, fmt.Errorf("%w: %s was made by PostgreSQL %s, this engined needs %d or newer",
			ErrVersion, pgdata, version, MinMajor)
	}
	return major, nil
}

// removeFresh removes what a killed initdb left.
func (d dataDir) removeFresh() error {
	left, _ := filepath.Glob(filepath.Join(d.path, freshPrefix+"*")) // The only error is a bad pattern.
	var errs []error
	for _, dir := range left {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
