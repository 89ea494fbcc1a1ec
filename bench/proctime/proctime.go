// Package proctime reads from /proc how much processor time processes have
// spent, so that a benchmark counts its own work and not what else runs on the
// machine. Where there is no /proc all but Self is 0.
package proctime

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Fields of /proc/PID/stat, counted from the one after the name.
const (
	ppid   = 1
	utime  = 11
	stime  = 12
	cutime = 13
	cstime = 14
)

// Self is the time of this process.
func Self() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Of is the time of a process.
func Of(pid int) time.Duration { return ticks(stat(pid), utime, stime) }

// Parent is the process that started another one; 0 where it is not told.
func Parent(pid int) int {
	s := stat(pid)
	if len(s) <= ppid {
		return 0
	}
	n, _ := strconv.Atoi(s[ppid]) // the kernel's own number
	return n
}

// Cluster adds the processes of a Postgres server up. Those that have ended count
// with the postmaster's waited-for children; one that moves there while the others
// are read would be missed, or count twice, so then all is read again.
func Cluster(postmaster int) time.Duration {
	for {
		ended := withChildren(postmaster)
		sum := ended
		all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
		for _, path := range all {
			if s := read(path); len(s) > ppid && s[ppid] == strconv.Itoa(postmaster) {
				sum += ticks(s, utime, stime)
			}
		}
		if withChildren(postmaster) == ended {
			return sum
		}
	}
}

// Machine is the time of all processors outside of idling and waiting for a disk:
// user, nice, system, irq and softirq of the first line of /proc/stat.
func Machine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return ticks(strings.Fields(line), 1, 2, 3, 6, 7)
}

func withChildren(pid int) time.Duration { return ticks(stat(pid), utime, stime, cutime, cstime) }

func stat(pid int) []string { return read(filepath.Join("/proc", strconv.Itoa(pid), "stat")) }

func read(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // it has ended meanwhile
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// ticks adds fields up; Linux counts in hundredths of a second everywhere.
func ticks(stat []string, fields ...int) time.Duration {
	var n int64
	for _, f := range fields {
		if f < len(stat) {
			if v, err := strconv.ParseInt(stat[f], 10, 64); err == nil {
				n += v
			}
		}
	}
	return time.Duration(n) * 10 * time.Millisecond
}
