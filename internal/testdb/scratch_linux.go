package testdb

import (
	"os"
	"syscall"
)

const (
	tmpfsMagic = 0x01021994
	// roomInMemory is what a run of all tests may take in memory: a database
	// is about 8 MB, and log segments stay below a quarter of it.
	roomInMemory = 2 << 30
)

// scratch is where clusters live: TMPDIR where set, else memory where there is
// room (cloning a database makes 300 files, and took 25 ms there and 20 times
// that on a disk), else the temporary directory. Containers often have 64 MB.
func scratch() string {
	const shm = "/dev/shm"
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(shm, &fs) != nil {
		return os.TempDir()
	}
	fi, err := os.Stat(shm)
	shared := err == nil && fi.Mode().Perm()&0o007 == 0o007 && fi.Mode()&os.ModeSticky != 0
	if !shared || fs.Type != tmpfsMagic || fs.Bavail*uint64(fs.Bsize) < roomInMemory {
		return os.TempDir()
	}
	return shm
}
