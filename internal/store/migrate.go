package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/engined/engined/migrations"
)

// ErrSchemaTooNew: the database was migrated by a newer engined.
var ErrSchemaTooNew = errors.New("the database schema is newer than this program")

// Whoever waits for a table has all who come later wait behind itself, readers
// too. So a migration waits for the moment that writers are used to, gives way, and
// comes again: a backup may hold a table for hours.
const (
	migrationWait     = time.Second
	migrationPause    = time.Second
	migrationPauseMax = 15 * time.Second
)

// Migrate brings the schema up to date. Any number of nodes may call it at
// once: one migrates, the others wait for it. Where another transaction holds
// what it needs, it waits as long as ctx allows.
func Migrate(ctx context.Context, url string, log *slog.Logger) (applied int, err error) {
	for pause := migrationPause; ; pause = min(2*pause, migrationPauseMax) {
		n, err := migrate(ctx, url)
		applied += n
		if err == nil {
			return applied, nil
		}
		const lockNotAvailable = "55P03"
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != lockNotAvailable {
			return applied, fmt.Errorf("migrate: %w", errUnavailable(err))
		}
		if log != nil {
			log.Warn("a transaction holds what a migration needs; trying again", "in", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return applied, fmt.Errorf("migrate: %w", ctx.Err())
		}
	}
}

// migrate applies what it can.
func migrate(ctx context.Context, url string) (applied int, err error) {
	err = withProvider(url, giveWay, func(p *goose.Provider) error {
		current, target, err := p.GetVersions(ctx)
		if err == nil && current > target {
			return fmt.Errorf("%w: schema %d, program %d", ErrSchemaTooNew, current, target)
		}
		if err == nil && current == target {
			return nil
		}
		results, err := p.Up(ctx)
		applied = len(results)
		if part, ok := errors.AsType[*goose.PartialError](err); ok {
			applied = len(part.Applied)
		}
		return err
	})
	if err == nil {
		err = secureTables(ctx, url)
	}
	return applied, err
}

// giveWay has a connection wait for no lock longer than a migration may.
func giveWay(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", migrationWait.Milliseconds()))
	return err
}

// MigrationStatus is one migration and when it was applied.
type MigrationStatus struct {
	Version int64
	Name    string
	Applied bool
	At      time.Time
}

// Migrations lists what is known and what is applied.
func Migrations(ctx context.Context, url string) ([]MigrationStatus, error) {
	var out []MigrationStatus
	migrated, err := hasSchema(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", errUnavailable(err))
	}
	err = withProvider(url, nil, func(p *goose.Provider) error {
		if !migrated {
			for _, src := range p.ListSources() {
				out = append(out, MigrationStatus{Version: src.Version, Name: src.Path})
			}
			return nil
		}
		sts, err := p.Status(ctx)
		for _, st := range sts {
			out = append(out, MigrationStatus{
				Version: st.Source.Version, Name: st.Source.Path, Applied: st.State == goose.StateApplied, At: st.AppliedAt,
			})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", errUnavailable(err))
	}
	return out, nil
}

// MigrateSessionKeys brings the schema of a database that has the keys of
// sessions alone up to date, as Migrate does.
func MigrateSessionKeys(ctx context.Context, url string) error {
	files, err := fs.Sub(migrations.Keys, "keys")
	if err != nil {
		return err
	}
	err = withFiles(url, files, nil, func(p *goose.Provider) error {
		current, target, err := p.GetVersions(ctx)
		if err != nil || current >= target {
			return err
		}
		_, err = p.Up(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate: %w", errUnavailable(err))
	}
	return nil
}

func withProvider(url string, begin func(context.Context, *pgx.Conn) error, fn func(*goose.Provider) error) error {
	return withFiles(url, migrations.FS, begin, fn)
}

func withFiles(url string, files fs.FS, begin func(context.Context, *pgx.Conn) error, fn func(*goose.Provider) error) (err error) {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	cc.RuntimeParams["application_name"] = "engined-migrate"
	// Nothing is worth preparing, and a node without leave to migrate may look at the
	// schema through a pooler.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	var opts []stdlib.OptionOpenDB
	if begin != nil {
		opts = append(opts, stdlib.OptionAfterConnect(begin))
	}
	sqlDB := stdlib.OpenDB(*cc, opts...)
	defer func() { err = errors.Join(err, sqlDB.Close()) }()
	// One second between tries: waiting on a blocked lock would hold a snapshot
	// and stop a concurrent index build for ever.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 30))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, sqlDB, files, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return fn(p)
}
