package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/engined/engined/bench/proctime"
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
	c.machine = proctime.Machine()
	c.node = proctime.Of(b.node.cmd.Process.Pid)
	c.client = proctime.Self()
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
	c.postgres = proctime.Cluster(postmaster)
	return c
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
