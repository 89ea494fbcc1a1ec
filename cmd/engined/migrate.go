package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/store"
)

var errNoDatabase = usageError{errors.New("no database: give --database-url or set ENGINED_DATABASE_URL")}

func (c *cli) migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the schema up to date, or show where it is",
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("say migrate up or migrate status")}
		},
	}
	up := &cobra.Command{Use: "up", Short: "Bring the schema up to date"}
	status := &cobra.Command{Use: "status", Short: "List the migrations; exits 1 when some are pending"}
	asJSON := jsonFlag(status)
	scope := config.General | config.Database
	cmd.AddCommand(
		c.command(up, scope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
			if cfg.DatabaseURL == "" {
				return errNoDatabase
			}
			n, err := store.Migrate(ctx, cfg.DatabaseURL, c.logger(cfg))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.out, "%s applied; the schema is up to date\n", plural(n, "migration"))
			return err
		}),
		c.command(status, scope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
			if cfg.DatabaseURL == "" {
				return errNoDatabase
			}
			return c.migrationStatus(ctx, cfg, *asJSON)
		}),
	)
	return cmd
}

func (c *cli) migrationStatus(ctx context.Context, cfg config.Config, asJSON bool) error {
	list, err := store.Migrations(ctx, cfg.DatabaseURL)
	if err != nil {
		return err
	}
	type row struct {
		Version   int64      `json:"version"`
		Name      string     `json:"name"`
		Applied   bool       `json:"applied"`
		AppliedAt *time.Time `json:"appliedAt,omitempty"`
	}
	rows := make([]row, len(list))
	pending := 0
	t := newTable(c.out, right("VERSION"), left("NAME"), left("APPLIED"))
	for i, m := range list {
		rows[i] = row{Version: m.Version, Name: m.Name, Applied: m.Applied}
		when := "pending"
		if m.Applied {
			rows[i].AppliedAt = &list[i].At
			when = m.At.UTC().Format(time.RFC3339)
		} else {
			pending++
		}
		t.row(seqText(m.Version), m.Name, when)
	}
	if asJSON {
		err = printJSON(c.out, map[string]any{"migrations": rows})
	} else {
		err = t.flush()
	}
	if err == nil && pending > 0 {
		err = fmt.Errorf("%s pending; run engined migrate up", plural(pending, "migration"))
	}
	return err
}
