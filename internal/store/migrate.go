package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/engined/engined/migrations"
)

// ErrSchemaTooNew: the database was migrated by a newer engined.
var ErrSchemaTooNew = errors.New("the database schema is newer than this program")

// Migrate brings the schema up to date. Any number of nodes may call it at
// once: one migrates, the others wait for it.
func Migrate(ctx context.Context, url string, log *slog.Logger) (applied int, err error) {
	err = withProvider(url, log, func(p *goose.Provider) error {
		current, target, err := p.GetVersions(ctx)
		if err == nil && current > target {
			return fmt.Errorf("%w: schema %d, program %d", ErrSchemaTooNew, current, target)
		}
		if err == nil && current == target {
			return nil
		}
		results, err := p.Up(ctx)
		applied = len(results)
		return err
	})
	if err != nil {
		return applied, fmt.Errorf("migrate: %w", errUnavailable(err))
	}
	if err := secureTables(ctx, url); err != nil {
		return applied, fmt.Errorf("migrate: %w", errUnavailable(err))
	}
	return applied, nil
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
	err = withFiles(url, nil, files, func(p *goose.Provider) error {
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

func withProvider(url string, log *slog.Logger, fn func(*goose.Provider) error) error {
	return withFiles(url, log, migrations.FS, fn)
}

func withFiles(url string, log *slog.Logger, files fs.FS, fn func(*goose.Provider) error) (err error) {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	cc.RuntimeParams["application_name"] = "engined-migrate"
	// Nothing is worth preparing, and a node without leave to migrate may look at the
	// schema through a pooler.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	sqlDB := stdlib.OpenDB(*cc)
	defer func() { err = errors.Join(err, sqlDB.Close()) }()
	// One second between tries: waiting on a blocked lock would hold a snapshot
	// and stop a concurrent index build for ever.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300), lock.WithUnlockTimeout(1, 30))
	if err != nil {
		return err
	}
	opts := []goose.ProviderOption{
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true),
	}
	if log != nil {
		opts = append(opts, goose.WithSlog(log))
	}
	p, err := goose.NewProvider(goose.DialectPostgres, sqlDB, files, opts...)
	if err != nil {
		return err
	}
	return fn(p)
}
