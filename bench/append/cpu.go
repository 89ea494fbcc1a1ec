package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTimes is the processor time spent so far, machine by everything that runs
// here. All but the client's are read from /proc; where there is none they stay 0.
type cpuTimes struct{ postgres, node, client, machine time.Duration }

func (c cpuTimes) since(then cpuTimes) cpuTimes {
	return cpuTimes{c.postgres - then.postgres, c.node - then.node, c.client - then.client, c.machine - then.machine}
}

// others is what is not ours.
func (c cpuTimes) others() time.Duration { return max(c.machine-c.postgres-c.node-c.client, 0) }

// cpuAt reads the times when that moment has come.
func (b *bench) cpuAt(when time.Time) <-chan cpuTimes {
	c := make(chan cpuTimes, 1)
	time.AfterFunc(time.Until(when), func() { c <- b.cpu() })
	return c
}

func (b *bench) cpu() cpuTimes {
	var c cpuTimes
	c.machine = ofMachine()
	c.node = ofProcess(b.node.cmd.Process.Pid, false)
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		c.client = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	if b.cluster == nil {
		return c
	}
	pid, err := os.ReadFile(filepath.Join(b.cluster.Dir(), "pgdata", "postmaster.pid"))
	if err != nil {
		return c
	}
	first, _, _ := bytes.Cut(pid, []byte("\n"))
	postmaster, err := strconv.Atoi(string(first))
	if err != nil {
		return c
	}
	c.postgres = ofCluster(postmaster)
	return c
}

// ofCluster adds the processes of a server up. Those that have ended count with
// the postmaster's waited-for children; one that moves there while the others
// are read would be missed, or count twice, so then all is read again.
func ofCluster(postmaster int) time.Duration {
	for {
		ended := ofProcess(postmaster, true)
		sum := ended
		stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
		for _, path := range stats {
			if s := readStat(path); len(s) > ppid && s[ppid] == strconv.Itoa(postmaster) {
				sum += ticks(s, utime, stime)
			}
		}
		if ofProcess(postmaster, true) == ended {
			return sum
		}
	}
}

// ofMachine is the time of all processors outside of idling and waiting for a
// disk: user, nice, system, irq and softirq of the first line of /proc/stat.
func ofMachine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return ticks(strings.Fields(line), 1, 2, 3, 6, 7)
}

// Fields of /proc/PID/stat, counted from the one after the name.
const (
	ppid   = 1
	utime  = 11
	stime  = 12
	cutime = 13
	cstime = 14
)

func readStat(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // it has ended meanwhile
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

func ofProcess(pid int, children bool) time.Duration {
	s := readStat(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if children {
		return ticks(s, utime, stime, cutime, cstime)
	}
	return ticks(s, utime, stime)
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

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}
