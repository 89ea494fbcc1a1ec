package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu is the processor time that this process and the processes of Postgres
// have spent; what else runs on the machine adds nothing to it. Without /proc
// only this process counts.
func (b *bench) cpu() time.Duration {
	var sum time.Duration
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		sum = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	backend := stat(filepath.Join("/proc", strconv.FormatUint(uint64(b.plain.PgConn().PID()), 10), "stat"))
	if backend == nil {
		return sum
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
	for _, path := range all {
		if s := stat(path); len(s) > stime && s[ppid] == backend[ppid] {
			for _, field := range s[utime : stime+1] {
				n, _ := strconv.ParseInt(field, 10, 64) // what is no number is no time
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}
	return sum
}

// Fields of /proc/PID/stat behind the name.
const (
	ppid  = 1
	utime = 11
	stime = 12
)

func stat(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // it has ended meanwhile
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
