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
	"strings"
	"time"
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
	perSecond = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)
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
		"-c", strconv.Itoa(conns), "-j", strconv.Itoa(min(conns, runtime.NumCPU())), "-T", strconv.Itoa(int(length.Seconds())),
		"-l", "--log-prefix=lat", "--sampling-rate=0.2", b.dsn)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c jit=off -c plan_cache_mode=force_generic_plan")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return measured{}, fmt.Errorf("pgbench: %w\n%s", err, said.String())
	}
	n, tps, bad := number(processed, &out), number(perSecond, &out), number(failed, &out)
	if n == 0 || tps == 0 || bad != 0 {
		return measured{}, fmt.Errorf("pgbench: %s%s", out.String(), said.String())
	}
	m := measured{calls: int64(n), took: time.Duration(n / tps * float64(time.Second))}
	m.lat, err = latencies(dir)
	return m, err
}

func number(re *regexp.Regexp, out *bytes.Buffer) float64 {
	m := re.FindSubmatch(out.Bytes())
	if m == nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return f
}

// latencies reads pgbench's per-transaction logs: the third field is in
// microseconds.
func latencies(dir string) ([]time.Duration, error) {
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
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				us, err := strconv.ParseInt(fields[2], 10, 64)
				if err != nil {
					continue // "skipped"
				}
				out = append(out, time.Duration(us)*time.Microsecond)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
