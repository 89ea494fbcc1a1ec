package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/config"
)

const nodeScope = config.General | config.Node | config.Database | config.Bus | config.Working

func (c *cli) serve() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a node",
		Long: words(
			"Run a node: it answers HTTP and keeps sessions in Postgres. With --worker it compacts too.",
			"It brings the schema up to date first; any number of nodes may start at once. NATS may be away:",
			"turns are served, and what is owed waits in Postgres.",
		),
	}
	return c.command(cmd, nodeScope|config.Serving|config.Starting, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		a := NewApp(cfg, Roles{Node: true, Worker: cfg.Worker}, c.logger(cfg))
		return c.runApp(ctx, a, func() error {
			a.log.Info("ready", "url", a.URL(), "worker", cfg.Worker, "engine", a.servingText(), "version", version())
			_, err := fmt.Fprintf(c.out, "engined is ready: %s\n", a.URL())
			return err
		})
	})
}

func (c *cli) worker() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker, which compacts what sessions owe",
		Long: words(
			"Run a worker: it writes the summaries that sessions owe and steps their epochs. It answers no turns.",
			"--health-listen lets a supervisor watch it.",
		),
	}
	scope := config.General | config.Database | config.Bus | config.Working | config.Starting | config.Alone
	return c.command(cmd, scope, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		a := NewApp(cfg, Roles{Worker: true}, c.logger(cfg))
		return c.runApp(ctx, a, func() error {
			a.log.Info("ready", "worker", true, "concurrency", cfg.WorkerConcurrency, "version", version())
			// Addresses may hold passwords; what they are is shown by config, masked.
			_, err := fmt.Fprintf(c.out, "engined worker is ready: %s at one time, NATS %s, Postgres %s\n",
				plural(cfg.WorkerConcurrency, "compaction"), bus.Hosts(cfg.NATSURL), databaseHost(cfg.DatabaseURL))
			return err
		})
	})
}
