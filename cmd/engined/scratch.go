package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// scratchYoung is the age below which a directory may not be locked yet.
const scratchYoung = time.Minute

// scratch makes a directory for what nobody keeps, locked until end removes it. Those
// that killed runs left go first: a private Postgres in them may hold conversations.
func scratch(base, prefix string) (dir string, end func() error, err error) {
	left, err := filepath.Glob(filepath.Join(base, prefix+"*"))
	if err != nil {
		return "", nil, err
	}
	for _, old := range left {
		sweepScratch(old)
	}
	if dir, err = os.MkdirTemp(base, prefix); err != nil {
		return "", nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Postgres may run as another user, who has to get in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, errors.Join(err, lock.Close(), os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// sweepScratch removes a directory whose process is gone. What cannot be locked or
// removed is somebody's, or another user's.
func sweepScratch(dir string) {
	fi, err := os.Lstat(dir)
	if err != nil || !fi.IsDir() || time.Since(fi.ModTime()) < scratchYoung {
		return
	}
	lock, err := lockDir(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	_ = os.RemoveAll(dir)
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
