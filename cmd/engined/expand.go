package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) expand() *cobra.Command {
	cmd := &cobra.Command{Use: "expand KEY ID", Short: "Read what a summary covers", Args: cobra.ExactArgs(2)}
	asJSON := jsonFlag(cmd)
	most := cmd.Flags().Int("tokens", 4000, "most tokens to show")
	after := cmd.Flags().Int("after", 0, "go on behind that many items")
	messages := cmd.Flags().Bool("messages", false, "all messages under it, not only one level down")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		id, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return usageError{fmt.Errorf("%q is no summary's id; `engined summaries KEY` lists them", args[1])}
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		page, raw, err := cl.Expand(ctx, args[0], id, *most, *after, *messages)
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		c.printExpansion(page)
		return nil
	})
}

func (c *cli) summaries() *cobra.Command {
	cmd := &cobra.Command{Use: "summaries KEY", Short: "List a session's summaries", Args: oneArg}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		list, raw, err := cl.Summaries(ctx, args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		return c.showSummaries(list)
	})
}

func (c *cli) printExpansion(page client.Expansion) {
	for _, it := range page.Items {
		name := "event " + seqText(it.Seq)
		if it.Kind == "summary" {
			name = "summary " + seqText(it.ID)
		}
		if it.SessionKey != "" {
			name += " of " + middle(it.SessionKey, 40)
		}
		fmt.Fprintf(c.out, "%s  %s  %s, %s tokens\n", name, it.Time.UTC().Format(time.RFC3339), strings.TrimSpace(it.Role+" "+it.Kind), thousands(it.Tokens))
		for line := range strings.SplitSeq(strings.TrimSpace(it.Text), "\n") {
			fmt.Fprintln(c.out, strings.TrimRight("  "+oneLine(line, 0), " "))
		}
		fmt.Fprintln(c.out)
	}
	fmt.Fprintf(c.out, "%s of %s, %s tokens\n", plural(len(page.Items), "item"), thousands(page.Total), thousands(page.Tokens))
	if page.Next != nil {
		fmt.Fprintf(c.out, "more with --after %d\n", *page.Next)
	}
}
