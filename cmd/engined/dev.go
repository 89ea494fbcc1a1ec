package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

// devDefaults keep the terminal for the banner.
var devDefaults = map[string]string{"log-level": "warn"}

func (c *cli) dev() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Run everything in one process, with a Postgres and a NATS of its own",
		Long: words(
			"Run a node, a worker, a private Postgres and an in-process NATS in one process. The data stays in",
			"one directory and is served again at the next start, also after a kill -9. With DATABASE_URL set",
			"that Postgres is used instead of a private one.",
		),
	}
	scope := config.General | config.Node | config.Database | config.Working | config.Dev
	return c.command(cmd, scope, devDefaults, func(ctx context.Context, cfg config.Config, _ []string) error {
		if cfg.Data == "" {
			var err error
			if cfg.Data, err = defaultData(c.lookupEnv); err != nil {
				return err
			}
		}
		a := NewApp(cfg, Roles{Node: true, Worker: true, Private: true}, c.logger(cfg))
		return c.runApp(ctx, a, func() error { return banner(c.out, a) })
	})
}

// banner says what runs where, and what to try.
func banner(w io.Writer, a *App) error {
	postgres := "the one of the database URL"
	if a.postgres != nil {
		postgres = "private, " + a.postgres.Version() + "; look into it with\n            psql '" + a.cfg.DatabaseURL + "'"
	}
	curl, first := "curl -s", ""
	if !a.open() {
		curl += ` -H "Authorization: Bearer $ENGINED_KEY"`
		if len(a.cfg.Keys) == 0 {
			first = "  ENGINED_KEY=$(" + a.keyCommand() + ")\n"
		}
	}
	console := ""
	if a.cfg.Console {
		console = "  console   " + a.URL() + "/console/\n"
	}
	_, err := fmt.Fprintf(w, `engined is ready: %[1]s

  data      %[2]s
  postgres  %[3]s
  nats      in this process
  engine    %[4]s
  budget    %[5]s tokens where a host tells none
%[8]s  docs      %[1]s/docs

Try:
%[7]s  %[6]s %[1]s/v1/sessions/hello/ingest -H 'Content-Type: application/json' \
    -d '{"message":{"role":"user","content":"Hello, engined!"}}'
  %[6]s %[1]s/v1/sessions/hello/assemble -H 'Content-Type: application/json' -d '{"tokenBudget":8000}'

Ctrl-C stops it; the data stays.
`, a.URL(), a.dataDir, postgres, a.servingText(), thousands(a.cfg.DefaultTokenBudget), curl, first, console)
	return err
}
