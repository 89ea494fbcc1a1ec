package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// The layout of dev's data directory. engined.lock is held for as long as an
// engined runs on it; the kernel takes it back from one that was killed.
const lockName = "engined.lock"

func postgresDir(data string) string { return filepath.Join(data, "postgres") }
func natsDir(data string) string     { return filepath.Join(data, "nats") }

// defaultData is where dev keeps its data when nobody says: .engined of the
// working directory where that exists, else a directory of the user.
func defaultData(lookupEnv func(string) (string, bool)) (string, error) {
	if fi, err := os.Stat(".engined"); err == nil && fi.IsDir() {
		return ".engined", nil
	}
	// Postgres does not run as root, and its user cannot enter root's home.
	if os.Geteuid() == 0 {
		return "/var/lib/engined", nil
	}
	if dir, _ := lookupEnv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "engined"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the data: %w; give one with --data", err)
	}
	return filepath.Join(home, ".local", "share", "engined"), nil
}

// checkForeign refuses a directory that holds something, and nothing of ours.
func checkForeign(dir string) error {
	found, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	var other string
	for _, e := range found {
		switch e.Name() {
		case lockName:
			return nil
		case "lost+found": // a disk's own
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("%s is no data directory of engined and is not empty (it holds %s); nothing was changed; give another with --data, or a new name inside it", dir, other)
	}
	return nil
}

// lockData makes the data directory and takes it for this process.
func (a *App) lockData() (string, error) {
	dir, err := filepath.Abs(a.cfg.Data)
	if err != nil {
		return "", err
	}
	if err := checkForeign(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return "", fmt.Errorf("another engined runs on the data directory %s; stop it, or choose another with --data", dir)
		}
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	a.dataDir = dir
	a.onClose("data directory", func(context.Context) error { return f.Close() })
	return dir, nil
}
