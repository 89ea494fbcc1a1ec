package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

func (c *cli) fork() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fork KEY NEW", Short: "Begin a session with another one's window", Args: cobra.ExactArgs(2),
		Long: "Begin the session NEW with the window that KEY shows, now or as of a seq. Nothing is copied;\n" +
			"neither session shows what the other stores later.",
	}
	asJSON := jsonFlag(cmd)
	at := cmd.Flags().Int64("at", 0, "as of this seq of KEY; by default its head")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		if cmd.Flags().Changed("at") && *at < 1 {
			return usageError{fmt.Errorf("--at %d: a seq, 1 or more", *at)}
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		_, raw, err := cl.Fork(ctx, args[0], args[1], *at)
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		fmt.Fprintf(c.out, "Forked: %s\n", oneLine(args[1], 0))
		return nil
	})
}
