package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) summarizers() *cobra.Command {
	cmd := &cobra.Command{
		Use: "summarizers", Short: "List whom compactions ask for summaries, who is left alone and what was spent today",
		Long: words(
			"List the summarizers of the key's tenant in the order in which they are asked, with the circuit breaker that",
			"all workers share and today's calls, tokens and costs (UTC). See docs/compaction.md.",
		),
	}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		list, raw, err := cl.Summarizers(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, raw)
		}
		return c.printSummarizers(list)
	})
}

func (c *cli) printSummarizers(list client.SummarizerList) error {
	if len(list.Summarizers) == 0 {
		fmt.Fprintln(c.out, "No models: the built-in extractive summarizer writes.")
		return nil
	}
	t := newTable(c.out, left("SUMMARIZER"), left("KIND"), left("MODEL"), left("STATE"), right("CALLS"), right("FAILED"), right("TOKENS IN"), right("OUT"), right("SPENT"), right("LIMIT"))
	for _, s := range list.Summarizers {
		t.row(oneLine(s.Name, 0), oneLine(s.Kind, 0), oneLine(s.Model, 0), s.State, thousands(s.Today.Calls), thousands(s.Today.Failed),
			thousands(s.Today.InputTokens), thousands(s.Today.OutputTokens), usd(s.Today.CostMicros), usd(s.DailyLimitMicros))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, s := range list.Summarizers {
		if s.OpenUntil != nil {
			fmt.Fprintf(c.out, "%s is left alone until %s: %s\n", oneLine(s.Name, 0), s.OpenUntil.UTC().Format(time.RFC3339), oneLine(s.LastError, 0))
		}
	}
	if sp := list.Spend; sp.LimitMicros > 0 {
		fmt.Fprintf(c.out, "The tenant spent %s of its %s a day; it starts over at %s.\n",
			cmp.Or(usd(sp.CostMicros), "$0"), usd(sp.LimitMicros), sp.ResetsAt.UTC().Format(time.RFC3339))
		if sp.CostMicros >= sp.LimitMicros {
			fmt.Fprintln(c.out, "Until then no summarizer with a price is asked.")
		}
	}
	return nil
}

// usd shows millionths of a dollar; nothing for none.
func usd(micros int64) string {
	if micros == 0 {
		return ""
	}
	return fmt.Sprintf("$%.4f", float64(micros)/1e6)
}
