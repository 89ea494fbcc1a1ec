package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/engined/engined/bench/proctime"
)

func findPgbench() (string, error) {
	if p, err := exec.LookPath("pgbench"); err == nil {
		return p, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is fine
	if len(found) == 0 {
		return "", errors.New("no pgbench found; it comes with Postgres (Debian: postgresql, Fedora: postgresql-contrib)")
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

var (
	processed = regexp.MustCompile(`transactions actually processed: (\d+)`)
	failed    = regexp.MustCompile(`failed transactions: (\d+)`)
)

// drivePgbench calls append_events with one item a transaction, prepared and
// with the settings of the node's own connections.
func (b *bench) drivePgbench(ctx context.Context, sessions, conns int, length time.Duration) (measured, error) {
	prefix := sessionKey(sidePgbench, sessions, 0)
	prefix = prefix[:len(prefix)-4]
	script := fmt.Sprintf("\\set s random(0, %d)\n\\set n random(1000000000000000, 4000000000000000000)\n%s;\n",
		sessions-1, appendSQL(b.bytes, "'"+prefix+"' || lpad((:s)::text, 4, '0')", "'call-' || (:n)::text"))
	dir, err := os.MkdirTemp(b.tmp, "pgbench-")
	if err != nil {
		return measured{}, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "append.sql"), []byte(script), 0o600); err != nil {
		return measured{}, err
	}
	cmd := exec.CommandContext(ctx, b.pgbench, "-n", "-M", "prepared", "-f", "append.sql",
		"-c", strconv.Itoa(conns), "-j", strconv.Itoa(min(conns, runtime.NumCPU())), "-T", strconv.Itoa(int((warmUp + length).Seconds())),
		"-l", "--log-prefix=lat", b.dsn)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c jit=off -c plan_cache_mode=force_generic_plan")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	from := time.Now().Add(warmUp)
	cpu := b.cpuAt(from)
	if err := cmd.Start(); err != nil {
		return measured{}, err
	}
	warm := make(chan time.Duration, 1)
	time.AfterFunc(time.Until(from), func() { warm <- proctime.Of(cmd.Process.Pid) })
	err = cmd.Wait()
	m := measured{took: length, used: b.cpu().since(<-cpu)}
	m.used.client += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - <-warm
	if err != nil {
		return m, fmt.Errorf("pgbench: %w\n%s", err, said.String())
	}
	m.calls = number(processed, &out)
	if m.calls == 0 || number(failed, &out) != 0 {
		return m, fmt.Errorf("pgbench: %s%s", out.String(), said.String())
	}
	m.lat, err = latencies(dir, from, from.Add(length))
	m.counted = int64(len(m.lat))
	return m, err
}

func number(re *regexp.Regexp, out *bytes.Buffer) int64 {
	m := re.FindSubmatch(out.Bytes())
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// latencies reads pgbench's per-transaction logs, the transactions that ended
// within a time. Fields: client, number, latency in µs, script, and when it
// ended, in seconds and µs.
func latencies(dir string, from, until time.Time) ([]time.Duration, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "lat.*"))
	if err != nil {
		return nil, err
	}
	var out []time.Duration
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var client, nr, took, script, sec, usec int64
			if _, err := fmt.Sscan(lines.Text(), &client, &nr, &took, &script, &sec, &usec); err != nil {
				return nil, errors.Join(fmt.Errorf("pgbench's log: %q: %w", lines.Text(), err), f.Close())
			}
			if end := time.Unix(sec, usec*1000); end.After(from) && !end.After(until) {
				out = append(out, time.Duration(took)*time.Microsecond)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
