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
			"List the summarizers of the key's tenant in the order in which they are asked, with today's calls, tokens and costs",
			"(UTC). A state is what all workers share: asked, left alone (after failures, for a time), on trial (the time is over:",
			"one worker asks it again) or former (the settings name it no more; it is listed while today's spend holds its costs).",
			"See docs/compaction.md.",
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
		t.row(oneLine(s.Name, 0), cmp.Or(oneLine(s.Kind, 0), "-"), cmp.Or(oneLine(s.Model, 0), "-"), stateOf(s), thousands(s.Today.Calls), thousands(s.Today.Failed),
			thousands(s.Today.InputTokens), thousands(s.Today.OutputTokens), cmp.Or(usd(s.Today.CostMicros), "-"), cmp.Or(usd(s.DailyLimitMicros), "-"))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, s := range list.Summarizers {
		switch stateOf(s) {
		case leftAlone:
			fmt.Fprintf(c.out, "%s is left alone until %s, after %s: %s\n", oneLine(s.Name, 0), s.OpenUntil.UTC().Format(time.RFC3339),
				plural(s.Failures, "failure"), oneLine(s.LastError, 0))
		case onTrial:
			fmt.Fprintf(c.out, "%s is tried by the next compaction, after %s: %s\n", oneLine(s.Name, 0), plural(s.Failures, "failure"), oneLine(s.LastError, 0))
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

// The states of a summarizer as people say them.
const (
	asked     = "asked"
	leftAlone = "left alone"
	onTrial   = "on trial"
	former    = "former"
)

// stateOf translates the words of a circuit breaker. A summarizer that the
// settings name no more is never asked, whatever its breaker says.
func stateOf(s client.Summarizer) string {
	switch {
	case s.Kind == "":
		return former
	case s.State == "open" && s.OpenUntil != nil:
		return leftAlone
	case s.State == "half-open":
		return onTrial
	}
	return asked
}

// usd shows millionths of a dollar; nothing for none.
func usd(micros int64) string {
	if micros == 0 {
		return ""
	}
	if micros%10_000 == 0 {
		return fmt.Sprintf("$%.2f", float64(micros)/1e6)
	}
	return fmt.Sprintf("$%.4f", float64(micros)/1e6)
}
