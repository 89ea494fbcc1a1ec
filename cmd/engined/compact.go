package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/events"
)

func (c *cli) compact() *cobra.Command {
	cmd := &cobra.Command{Use: "compact KEY", Short: "Compact a session now", Args: oneArg}
	asJSON := jsonFlag(cmd)
	force := cmd.Flags().Bool("force", false, "even under the threshold")
	budget := cmd.Flags().Int("budget", 0, "token budget; by default the session's own")
	dryRun := cmd.Flags().Bool("dry-run", false, "show the plan and write nothing")
	instructions := cmd.Flags().String("instructions", "", "what the summaries should keep an eye on")
	redo := cmd.Flags().Bool("redo", false, "undo the newest compaction first, then compact as with --force: with other instructions or another summarizer")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		p := contextengine.CompactParams{Force: *force || *redo, DryRun: *dryRun, CustomInstructions: *instructions}
		if *redo && *dryRun {
			return usageError{errors.New("--redo and --dry-run exclude each other: an undo writes")}
		}
		if cmd.Flags().Changed("budget") {
			p.TokenBudget = budget
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		if _, err := cl.Session(ctx, args[0]); err != nil {
			return err
		}
		if *redo {
			if _, _, err := cl.UndoCompaction(ctx, args[0], 0); err != nil {
				return err
			}
		}
		res, raw, err := cl.Compact(ctx, args[0], p)
		if err != nil {
			return err
		}
		if *asJSON {
			err = printRaw(c.out, raw)
		} else {
			err = c.printCompaction(res, *dryRun)
		}
		if err == nil && !res.OK {
			err = fmt.Errorf("not compacted: %s", res.Reason)
		}
		return err
	})
}

// planShown is how many summaries of a plan people get to see.
const planShown = 12

func (c *cli) printCompaction(res contextengine.CompactResult, dryRun bool) error {
	var before, after int
	if r := res.Result; r != nil {
		before, after = r.TokensBefore, r.TokensAfter
	}
	switch {
	case res.Compacted:
		fmt.Fprintf(c.out, "Compacted: %s → %s tokens, epoch %s\n", thousands(before), thousands(after), thousands(res.Epoch))
	case dryRun && res.Result != nil:
		fmt.Fprintf(c.out, "Would compact: %s → %s tokens, in epoch %s\n", thousands(before), thousands(after), thousands(res.Epoch))
	default:
		fmt.Fprintf(c.out, "Not compacted: %s (epoch %s)\n", oneLine(res.Reason, 0), thousands(res.Epoch))
	}
	if res.Result == nil {
		return nil
	}
	return c.printPlan(res.Result.Details)
}

// printPlan shows the summaries of a plan. Details are an engine's own: what is
// no plan of ours is left to --json.
func (c *cli) printPlan(details json.RawMessage) error {
	var plan struct {
		Steps []struct {
			Level        int            `json:"level"`
			Covers       []events.Range `json:"covers"`
			SourceTokens int            `json:"sourceTokens"`
			MaxTokens    int            `json:"maxTokens"`
		} `json:"steps"`
	}
	if json.Unmarshal(details, &plan) != nil || len(plan.Steps) == 0 {
		return nil //nolint:nilerr // another engine's
	}
	fmt.Fprintln(c.out)
	t := newTable(c.out, right("SUMMARY"), right("LEVEL"), right("TOKENS"), right("AT MOST"), left("OF"))
	for i, s := range plan.Steps[:min(planShown, len(plan.Steps))] {
		t.row(thousands(i+1), thousands(s.Level), thousands(s.SourceTokens), thousands(s.MaxTokens), ranges(s.Covers))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more := len(plan.Steps) - planShown; more > 0 {
		fmt.Fprintf(c.out, "and %s more; --json shows the whole plan\n", thousands(more))
	}
	return nil
}
