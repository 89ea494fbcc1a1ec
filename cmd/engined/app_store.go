package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/devpg"
	"github.com/engined/engined/internal/store"
)

const (
	databaseName = "engined"
	// postgresPatience is how long a start waits for a Postgres that is away;
	// postgresGrace what it has for its own end when the rest used the grace up.
	postgresPatience = 30 * time.Second
	postgresGrace    = 10 * time.Second
)

// startPrivate runs Postgres and NATS for dev.
func (a *App) startPrivate(ctx context.Context) error {
	if !a.roles.Private {
		return nil
	}
	dir, err := a.lockData()
	if err != nil {
		return err
	}
	if a.cfg.DatabaseURL == "" {
		if err := a.startPostgres(ctx, dir); err != nil {
			return err
		}
	}
	a.nats, err = bus.StartEmbedded(ctx, bus.EmbeddedOptions{StoreDir: natsDir(dir), Log: a.log})
	if err != nil {
		return err
	}
	a.onClose("NATS", a.nats.Stop)
	return nil
}

func (a *App) startPostgres(ctx context.Context, dir string) error {
	cluster, err := devpg.Start(ctx, devpg.Options{DataDir: postgresDir(dir), Fast: a.roles.Fast, Log: a.log})
	if err != nil {
		return err
	}
	a.postgres = cluster
	stopping := make(chan struct{})
	a.onClose("Postgres", func(ctx context.Context) error {
		close(stopping)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postgresGrace)
		defer cancel()
		return cluster.Stop(ctx)
	})
	go func() {
		select {
		case <-cluster.Done():
			a.failed(errors.New("the private Postgres has ended; its log is in " + cluster.Dir()))
		case <-stopping:
		}
	}()
	if a.cfg.DatabaseURL, err = cluster.EnsureDatabase(ctx, databaseName); err != nil {
		return err
	}
	return a.tellDatabase(filepath.Join(a.dataDir, databaseFile))
}

// tellDatabase lets commands such as keys find the private Postgres while it runs.
func (a *App) tellDatabase(file string) error {
	if err := os.WriteFile(file, []byte(a.cfg.DatabaseURL+"\n"), 0o600); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	a.onClose("database url", func(context.Context) error { return os.Remove(file) })
	return nil
}

// openStore migrates and connects.
func (a *App) openStore(ctx context.Context) error {
	if a.cfg.DatabaseURL == "" {
		return errors.New("no database: set --database-url or ENGINED_DATABASE_URL (engined dev runs a private one)")
	}
	if err := a.migrate(ctx); err != nil {
		return err
	}
	owes, owesOf := debtMilli(a.cfg)
	s, end, err := openSealed(ctx, a.cfg, store.Config{
		URL: a.cfg.DatabaseURL, MaxConns: int32(a.cfg.DatabaseConns), StatementTimeout: a.cfg.StatementTimeout,
		PgBouncer: a.cfg.PgBouncer, RowSecurity: a.cfg.RowSecurity != "off", DefaultBudget: int64(a.cfg.DefaultTokenBudget),
		DebtMilli: owes, DebtMilliOf: owesOf, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.store = s
	a.onClose("store", func(context.Context) error { end(); return nil })
	if s.Vault() != nil {
		// It serves all the same: plain sessions and new ones have nothing to do with it.
		if err := keysElsewhere(ctx, s.Vault(), s); err != nil {
			a.log.Error("encrypted sessions can't be read here", "error", err)
		}
	}
	return a.secureRows(ctx)
}

// secureRows sees to it that the setting row-security is kept.
func (a *App) secureRows(ctx context.Context) error {
	if a.cfg.RowSecurity == "off" {
		return nil
	}
	const fix = "the database role of this node may not become " + store.TenantRole + "; docs/security.md says how it can"
	switch able, err := a.store.CanSecureRows(ctx); {
	case err != nil:
		return err
	case able:
	case a.cfg.RowSecurity == "on":
		return errors.New("row-security: " + fix)
	default:
		a.log.Warn("row level security is off", "reason", fix)
		a.store.LeaveRowsUnsecured()
	}
	return nil
}

// migrate brings the schema up to date, or checks that it is. A database that
// is away is waited for: it may be starting beside us.
func (a *App) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	said := ""
	for until := time.Now().Add(postgresPatience); ; {
		err := a.migrateOnce(ctx)
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(until) || a.roles.Private {
			return err
		}
		if text := err.Error(); text != said { // once, not every second
			said = text
			a.log.Warn("Postgres does not answer yet; it is waited for", "for", postgresPatience, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

func (a *App) migrateOnce(ctx context.Context) error {
	if !a.cfg.NoMigrate {
		n, err := store.Migrate(ctx, a.cfg.DatabaseURL, a.log)
		if err == nil && n > 0 {
			a.log.Info("schema migrated", "migrations", n)
		}
		return err
	}
	return schemaFits(ctx, a.cfg.DatabaseURL)
}

// schemaFits refuses a database whose schema is not this program's. Commands that
// talk to Postgres themselves ask first and never migrate: that is for
// migrate up, or for nodes and workers as they start.
func schemaFits(ctx context.Context, url string) error {
	current, target, err := store.Schema(ctx, url)
	switch {
	case err != nil:
		return err
	case current < target:
		return fmt.Errorf("the schema is at %d, this program needs %d: run engined migrate up", current, target)
	case current > target:
		return fmt.Errorf("%w: schema %d, program %d", store.ErrSchemaTooNew, current, target)
	}
	return nil
}
