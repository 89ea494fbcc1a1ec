package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) engines() *cobra.Command {
	cmd := &cobra.Command{
		Use: "engines", Short: "List a node's engines, who serves and what is set aside",
		Long: words(
			"List the engines of a node: who offers them, which one the slot names and which are set aside, on that",
			"node alone. While an engine is set aside the default engine, legacy, serves.",
		),
	}
	asJSON := jsonFlag(cmd)
	cmd = c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		list, raw, err := cl.Engines(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		return c.printEngines(list)
	})
	cmd.AddCommand(c.clearEngine())
	return cmd
}

func (c *cli) printEngines(list client.EngineList) error {
	t := newTable(c.out, left("ENGINE"), left("OWNER"), left("NAME"), left("VERSION"), left("COMPACTION"), left("SLOT"), left("STATE"))
	for _, e := range list.Engines {
		compaction, state := "host", ""
		if e.OwnsCompaction {
			compaction = "engine"
		}
		switch {
		case e.Quarantine != "":
			state = "set aside"
		case e.ID == list.Serving:
			state = "serves"
		}
		t.row(oneLine(e.ID, 0), oneLine(e.Owner, 0), oneLine(e.Name, 0), oneLine(e.Version, 0), compaction, oneLine(e.Slot, 0), state)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, q := range list.Quarantines {
		fmt.Fprintf(c.out, "%s is set aside since %s: %s failed: %s\n",
			oneLine(q.EngineID, 0), q.FailedAt.UTC().Format(time.RFC3339), oneLine(q.Operation, 0), oneLine(q.Reason, 0))
	}
	return nil
}

func (c *cli) clearEngine() *cobra.Command {
	cmd := &cobra.Command{
		Use: "clear ID", Short: "Give an engine that is set aside another chance", Args: oneArg,
		Long: words(
			"Clear an engine's quarantine on one node, the one of --url. The next call makes a new instance of it.",
			"Exits 0 also when the engine was not set aside.",
		),
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		cleared, raw, err := cl.ClearQuarantine(ctx, args[0])
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printRaw(c.out, raw)
		case cleared:
			fmt.Fprintf(c.out, "%s may serve again\n", oneLine(args[0], 0))
		default:
			fmt.Fprintf(c.out, "%s was not set aside\n", oneLine(args[0], 0))
		}
		return nil
	})
}
