package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

const (
	// demoBudget is what the demo's turn reports, demoBudgets what it assembles
	// windows for.
	demoBudget = 32_000
	// demoPatience bounds the wait for the worker.
	demoPatience = 60 * time.Second
)

var demoBudgets = []int{8_000, 32_000}

func (c *cli) demo() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "Send a real transcript through the whole cycle, then exit",
		Long: words(
			"Start everything in a directory that is removed at the end, import a real session of a coding agent, look at",
			"its windows, end a turn, wait for the compaction that a worker does, look again, and check that nothing is lost.",
			"With --url the demo runs on that node instead, in a session of its own.",
		),
	}
	keep := cmd.Flags().String("keep", "", "keep the data in this `dir`, to look at with engined dev --data")
	scope := config.General | config.Client | config.Working
	return c.command(cmd, scope, devDefaults, func(ctx context.Context, cfg config.Config, _ []string) error {
		d := &demo{c: c, key: "demo:pi-coding-agent"}
		began := c.now()
		fmt.Fprintln(c.out, "engined demo: one real transcript through the whole cycle")
		err := d.run(ctx, cfg, cmd.Flags().Changed("url"), *keep)
		if err == nil {
			fmt.Fprintf(c.out, "\nAll of it holds. %s in all.\n", c.now().Sub(began).Round(100*time.Millisecond))
		}
		return err
	})
}

// demo is one run.
type demo struct {
	c    *cli
	node *client.Client
	app  *App // nil on somebody else's node
	key  string

	dir      string
	sent     []sentMessage
	before   []view
	headThen int64
}

// run starts what is needed, goes through the steps and cleans up.
func (d *demo) run(ctx context.Context, cfg config.Config, remote bool, keep string) (err error) {
	var remove func() error
	if d.dir, remove, err = scratch(os.TempDir(), "engined-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if remote {
		d.key += fmt.Sprintf(":%d", d.c.now().UnixMilli())
		fmt.Fprintf(d.c.out, "\n1. The node at %s\n", cfg.URL)
	} else {
		cfg.Data = filepath.Join(d.dir, "data")
		if keep != "" {
			cfg.Data = keep
		}
		fmt.Fprintln(d.c.out, "\n1. A node, a worker, Postgres and NATS in this process")
		if err := d.start(ctx, &cfg, keep == ""); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.app.Close()) }()
	}
	if d.node, err = node(cfg); err != nil {
		return err
	}
	defer d.node.Close()
	for _, step := range []func(context.Context) error{
		d.importSession, d.lookBefore, d.endTurn, d.lookAfter, d.expand, d.verify,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start runs engined here and points the client at it.
func (d *demo) start(ctx context.Context, cfg *config.Config, fast bool) error {
	began := d.c.now()
	// What the environment says of production is not for demos.
	cfg.DatabaseURL, cfg.Listen, cfg.Keys, cfg.Engine = "", "127.0.0.1:0", nil, "lossless"
	d.app = NewApp(*cfg, Roles{Node: true, Worker: true, Private: true, Fast: fast}, d.c.logger(*cfg))
	if err := d.app.Start(ctx); err != nil {
		return err
	}
	cfg.URL, cfg.Key = d.app.URL(), ""
	d.okf("%s, PostgreSQL %s, ready in %s", cfg.URL, d.app.postgres.Version(), d.c.now().Sub(began).Round(time.Millisecond))
	return nil
}

// okf says what holds.
func (d *demo) okf(format string, args ...any) {
	fmt.Fprintf(d.c.out, "   ✓ "+format+"\n", args...)
}
