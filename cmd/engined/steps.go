package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) reset() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset KEY", Short: "Hide what a session shows; the log keeps it", Args: oneArg,
		Long: "Hide what the session KEY shows: the next window begins with what is stored from now on.\nThe log keeps everything; `engined erase` is for good.",
	}
	keep := cmd.Flags().Int64("keep-from", 0, "keep what began at this seq; by default nothing")
	reason := cmd.Flags().String("reason", "", "why, for the log")
	return c.steps(cmd, "Reset", func(ctx context.Context, cl *client.Client, key string) (client.Stepped, json.RawMessage, error) {
		if cmd.Flags().Changed("keep-from") && *keep < 1 {
			return client.Stepped{}, nil, usageError{fmt.Errorf("--keep-from %d: a seq, 1 or more", *keep)}
		}
		return cl.Reset(ctx, key, *keep, *reason)
	})
}

func (c *cli) rewind() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rewind KEY --to SEQ", Short: "Go back to an earlier message", Args: oneArg,
		Long: "Make the newest message at or before a seq the session's last one. What came after it is not shown any more;\nthe log keeps it.",
	}
	to := cmd.Flags().Int64("to", 0, "the seq to go back to")
	return c.steps(cmd, "Rewound", func(ctx context.Context, cl *client.Client, key string) (client.Stepped, json.RawMessage, error) {
		if *to < 1 {
			return client.Stepped{}, nil, usageError{fmt.Errorf("--to: the seq to go back to, 1 or more; `engined events %s` lists them", oneLine(key, 0))}
		}
		return cl.Rewind(ctx, key, *to)
	})
}

func (c *cli) undoCompaction() *cobra.Command {
	cmd := &cobra.Command{Use: "undo-compaction KEY", Short: "Go back to the window before a compaction", Args: oneArg}
	epoch := cmd.Flags().Int64("epoch", 0, "undo the compaction that began this epoch; by default the newest")
	return c.steps(cmd, "Undone", func(ctx context.Context, cl *client.Client, key string) (client.Stepped, json.RawMessage, error) {
		return cl.UndoCompaction(ctx, key, *epoch)
	})
}

// steps runs a call that moves a session to another epoch.
func (c *cli) steps(
	cmd *cobra.Command, done string, do func(ctx context.Context, cl *client.Client, key string) (client.Stepped, json.RawMessage, error),
) *cobra.Command {
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		res, raw, err := do(ctx, cl, args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		fmt.Fprintf(c.out, "%s: epoch %s, head %s\n", done, thousands(res.Epoch), thousands(res.Head))
		return nil
	})
}

func (c *cli) maintain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "maintain KEY", Short: "Have a session's engine do its housekeeping", Args: oneArg,
		Long: "Have the session's engine do its housekeeping now, as it does after turns. The built-in engines replace old tool\nresults in the window, where `rewrite-results` is on.",
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		if _, err := cl.Session(ctx, args[0]); err != nil { // there is nothing to do for a key that was misspelt, either
			return err
		}
		res, raw, err := cl.Maintain(ctx, args[0])
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			return printRaw(c.out, raw)
		case res.Changed:
			fmt.Fprintf(c.out, "Maintained: %s entries rewritten, %s bytes less\n", thousands(res.RewrittenEntries), thousands(res.BytesFreed))
		default:
			fmt.Fprintf(c.out, "Nothing to do: %s\n", oneLine(cmp.Or(res.Reason, "nothing is old and large enough"), 0))
		}
		return nil
	})
}
