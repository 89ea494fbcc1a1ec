package main

import (
	"time"

	"github.com/engined/engined/bench/proctime"
)

// cpu is the processor time that this process and the processes of Postgres
// have spent; what else runs on the machine adds nothing to it.
func (b *bench) cpu() time.Duration {
	sum := proctime.Self()
	if postmaster := proctime.Parent(int(b.plain.PgConn().PID())); postmaster > 0 {
		sum += proctime.Cluster(postmaster)
	}
	return sum
}
