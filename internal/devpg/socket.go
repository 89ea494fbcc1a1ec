package devpg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// socketPrefix begins the names of socket directories.
const socketPrefix = "engined-pg-"

// maxSocketDir is what a directory may take of the 103 bytes the narrowest
// system gives a socket's path.
const maxSocketDir = 103 - len("/.s.PGSQL.5432")

// socketDir makes the directory of the server's socket: of the server's user,
// closed to others, empty. Its name follows from the data directory, so that a
// DSN outlives a restart.
func socketDir(want, dataDir string, id identity) (string, error) {
	if want != "" {
		dir, err := filepath.Abs(want)
		if err != nil {
			return "", err
		}
		return dir, claimSocketDir(dir, id)
	}
	sum := sha256.Sum256([]byte(strconv.Itoa(id.uid) + dataDir))
	name := socketPrefix + hex.EncodeToString(sum[:6])
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp"} {
		base, err := filepath.EvalSymlinks(base)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sweepSockets(base)
		dir := filepath.Join(base, name)
		if err = claimSocketDir(dir, id); err == nil {
			return dir, nil
		}
		errs = append(errs, err)
		// Somebody else sits on the name: any other will do.
		if !errors.Is(err, fs.ErrExist) {
			continue
		}
		if dir, err = os.MkdirTemp(base, socketPrefix); err == nil {
			if err = claimSocketDir(dir, id); err == nil {
				return dir, nil
			}
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("socket directory: %w", errors.Join(errs...))
}

// forgotten is the age at which an empty directory is nobody's any more: a start
// makes its socket within seconds.
const forgotten = time.Hour

// sweepSockets removes the directories that killed servers left in base. One that
// is not empty is somebody's, and stays by itself.
func sweepSockets(base string) {
	dirs, err := filepath.Glob(filepath.Join(base, socketPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() && time.Since(fi.ModTime()) > forgotten {
			_ = os.Remove(dir) // not empty, or another user's
		}
	}
}

// claimSocketDir makes dir, or takes one over that can only be ours. What a
// killed server left in it goes: the lock beside a socket names a pid that may
// belong to anybody by now.
func claimSocketDir(dir string, id identity) error {
	if len(dir) > maxSocketDir {
		return fmt.Errorf("%s is longer than %d bytes, too long for a socket", dir, maxSocketDir)
	}
	if blocked := id.blockedBy(filepath.Dir(dir)); blocked != "" {
		return fmt.Errorf("user %s cannot enter %s", id.name, blocked)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, err := ownerOf(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() || (owner != id.uid && owner != os.Geteuid()) || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a private directory of user %s: %w", dir, id.name, fs.ErrExist)
	}
	for _, name := range []string{".s.PGSQL.5432", ".s.PGSQL.5432.lock"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	now := time.Now()
	return errors.Join(os.Chtimes(dir, now, now), id.own(dir)) // touched, so that no other start sweeps it away
}
