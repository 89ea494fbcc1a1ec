package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/devpg"
)

// bench is what a run stands on. The tallies are what was acknowledged.
type bench struct {
	options
	dsn     string
	db      *pgx.Conn
	cluster *devpg.Cluster // nil with DATABASE_URL
	drop    func(context.Context) error
	node    *node
	pgbench string
	tmp     string
	acked   map[string]int64 // by side
	calls   int64            // numbers the HTTP side's idempotency keys
}

const (
	sideHTTP    = "http"
	sidePgbench = "pgbench"
)

func start(ctx context.Context, o options) (_ *bench, err error) {
	b := &bench{options: o, acked: make(map[string]int64)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if b.pgbench, err = findPgbench(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	if b.tmp, err = os.MkdirTemp(o.dir, "bench-append-"); err != nil {
		return nil, err
	}
	if given := os.Getenv("DATABASE_URL"); given != "" {
		err = b.borrow(ctx, given)
	} else {
		err = b.private(ctx)
	}
	if err != nil {
		return nil, err
	}
	if b.db, err = pgx.Connect(ctx, b.dsn); err != nil {
		return nil, err
	}
	if b.node, err = startNode(ctx, o.engined, b.dsn, filepath.Join(b.tmp, "node.log")); err != nil {
		return nil, err
	}
	return b, b.open(ctx)
}

// private runs a durable Postgres. Checkpoints are kept out of the short
// measurements; everything else is as it comes.
func (b *bench) private(ctx context.Context) error {
	most := 0
	for _, n := range b.connections {
		most = max(most, n)
	}
	cluster, err := devpg.Start(ctx, devpg.Options{
		DataDir: filepath.Join(b.tmp, "postgres"), Ephemeral: true, MaxConnections: most + 40,
		Settings: map[string]string{"shared_buffers": "256MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"},
	})
	if err != nil {
		return err
	}
	b.cluster = cluster
	b.dsn, err = cluster.EnsureDatabase(ctx, "bench")
	return err
}

// borrow makes a database of its own on a server that runs already.
func (b *bench) borrow(ctx context.Context, given string) error {
	u, err := url.Parse(given)
	if err != nil || u.Scheme == "" {
		return errors.New("DATABASE_URL must be a URL")
	}
	name := fmt.Sprintf("engined_bench_%d", time.Now().UnixNano())
	exec := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, given)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := exec(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	b.drop = func(ctx context.Context) error { return exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)") }
	u.Path = "/" + name
	b.dsn = u.String()
	return nil
}

func (b *bench) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	if b.node != nil {
		errs = append(errs, b.node.stop())
	}
	if b.db != nil {
		errs = append(errs, b.db.Close(ctx))
	}
	if b.drop != nil {
		errs = append(errs, b.drop(ctx))
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.Stop(ctx))
	}
	if b.tmp != "" {
		errs = append(errs, os.RemoveAll(b.tmp))
	}
	return errors.Join(errs...)
}

// open makes the sessions of both sides, so that no measurement opens one.
func (b *bench) open(ctx context.Context) error {
	for _, side := range []string{sideHTTP, sidePgbench} {
		for _, sessions := range b.spreads() {
			for i := range sessions {
				if _, err := b.db.Exec(ctx, appendSQL(b.bytes, "'"+sessionKey(side, sessions, i)+"'", "gen_random_uuid()::text")); err != nil {
					return fmt.Errorf("open sessions: %w", err)
				}
				b.acked[side]++
			}
		}
	}
	_, err := b.db.Exec(ctx, "ANALYZE")
	return err
}

// machine says what the numbers were measured on.
func (b *bench) machine(ctx context.Context) string {
	var version, durable string
	err := b.db.QueryRow(ctx, `SELECT current_setting('server_version'),
		format('fsync %s, synchronous_commit %s', current_setting('fsync'), current_setting('synchronous_commit'))`).Scan(&version, &durable)
	if err != nil {
		version = err.Error()
	}
	version, _, _ = strings.Cut(version, " ")
	return fmt.Sprintf("%s/%s, %d CPUs%s, %s, PostgreSQL %s (%s), fsync of 8 KiB %s", runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), cpuModel(), runtime.Version(), version, durable, syncTime(b.tmp))
}

// syncTime is the median time to write 8 KiB and sync them in a directory.
func syncTime(dir string) string {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return "unknown"
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	page := make([]byte, 8<<10)
	var took []time.Duration
	for range 51 {
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil || f.Sync() != nil {
			return "unknown"
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, .5).Round(10 * time.Microsecond).String()
}
