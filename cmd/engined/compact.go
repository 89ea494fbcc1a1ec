package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
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
	redo := cmd.Flags().Bool("redo", false, "undo the newest compaction first, then compact as with --force, within --budget or the session's own: with other instructions or another summarizer")
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
		before, err := cl.Session(ctx, args[0])
		if err != nil {
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
			if err == nil && res.Compacted {
				err = c.printAuthors(ctx, cl, args[0], before.Head)
			}
		}
		if err == nil && !res.OK {
			err = fmt.Errorf("not compacted: %s", res.Reason)
		}
		return err
	})
}

// printAuthors tells who wrote the summaries that came after a seq: whoever chose
// a model wants to know whether it wrote.
func (c *cli) printAuthors(ctx context.Context, cl *client.Client, key string, after int64) error {
	all, _, err := cl.Summaries(ctx, key)
	if err != nil {
		return err
	}
	wrote, cost, lastResort := map[string]int{}, int64(0), 0
	for _, s := range all {
		if s.ID > after {
			wrote[s.Summarizer]++
			cost += s.CostMicros
			if s.Degraded {
				lastResort++
			}
		}
	}
	if len(wrote) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(wrote)) {
		parts = append(parts, oneLine(name, 0)+" "+thousands(wrote[name]))
	}
	fmt.Fprintf(c.out, "Summaries by %s%s\n", strings.Join(parts, ", "), prefixed("; ", usd(cost)))
	if lastResort > 0 {
		fmt.Fprintf(c.out, "%s of them by the last resort, because no model could: written again when one can; engined summarizers says why\n", thousands(lastResort))
	}
	return nil
}

// prefixed is text behind a prefix, or nothing.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
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
		Calls               int   `json:"calls"`
		Rounds              int   `json:"rounds"`
		InputTokens         int   `json:"inputTokens"`
		OutputTokens        int   `json:"outputTokens"`
		EstimatedCostMicros int64 `json:"estimatedCostMicros"`
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
	if plan.Calls > 0 {
		fmt.Fprintf(c.out, "Summarizers are asked %s in %s: at most %s tokens in, %s out%s\n", plural(plan.Calls, "time"), plural(plan.Rounds, "round"),
			thousands(plan.InputTokens), thousands(plan.OutputTokens), prefixed(", ", usd(plan.EstimatedCostMicros)))
	}
	return nil
}
