package devpg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is the user the server runs as.
type identity struct {
	uid, gid int
	name     string
	// dropped says that this process is root and the server runs as another.
	dropped bool
}

// serverIdentity is the caller, or for root, whom Postgres refuses: the owner
// of an existing data directory, else postgres, else nobody. The user needs a
// passwd entry, or Postgres fails to look itself up.
func serverIdentity(pgdata string) (identity, error) {
	if uid := os.Geteuid(); uid != 0 {
		id := identity{uid: uid, gid: os.Getegid(), name: strconv.Itoa(uid)}
		if u, err := user.Current(); err == nil {
			id.name = u.Username
		}
		return id, nil
	}
	if owner, err := ownerOf(pgdata); err == nil && owner != 0 {
		if u, err := user.LookupId(strconv.Itoa(owner)); err == nil {
			return dropTo(u)
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return dropTo(u)
		}
	}
	return identity{}, errors.New("Postgres does not run as root, and there is no user postgres or nobody to run it as")
}

func dropTo(u *user.User) (identity, error) {
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return identity{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return identity{uid: uid, gid: gid, name: u.Username, dropped: true}, nil
}

// credential is nil where the server runs as the caller.
func (id identity) credential() *syscall.Credential {
	if !id.dropped {
		return nil
	}
	return &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)}
}

// blockedBy names the first directory on the way into dir, dir included, that
// the server's user may not enter; empty means the way is free. The caller's
// own directories are not checked: the kernel will.
func (id identity) blockedBy(dir string) string {
	if !id.dropped {
		return ""
	}
	if parent := filepath.Dir(dir); parent != dir {
		if b := id.blockedBy(parent); b != "" {
			return b
		}
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return dir
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return dir
	}
	bit := os.FileMode(0o001)
	switch {
	case int(st.Uid) == id.uid:
		bit = 0o100
	case int(st.Gid) == id.gid:
		bit = 0o010
	}
	if fi.Mode()&bit == 0 {
		return dir
	}
	return ""
}

// own gives path to the server's user; nothing to do when that is the caller.
func (id identity) own(path string) error {
	if !id.dropped {
		return nil
	}
	return os.Lchown(path, id.uid, id.gid)
}

// ownAll gives a whole tree to the server's user.
func (id identity) ownAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return id.own(path)
	})
}

func ownerOf(path string) (int, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: no owner", path)
	}
	return int(st.Uid), nil
}
