package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

const (
	pageRows = 200
	// keyColumns is how wide a session key is shown.
	keyColumns = 48
)

func (c *cli) sessions() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions", Short: "List the sessions of a tenant",
		Long: "List the sessions of a tenant. Long keys are shortened in the middle; --json has them whole.",
	}
	asJSON := jsonFlag(cmd)
	limit := cmd.Flags().Int("limit", 0, "most rows; 0 is all")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		t := newTable(c.out, left("SESSION"), right("HEAD"), right("EPOCH"), right("TOKENS"), right("BUDGET"), right("OWES"), right("AGE"))
		out := rowWriter{w: c.out, name: "sessions"}
		after, seen := "", 0
		for {
			rows, next, err := cl.Sessions(ctx, after, pageOf(*limit, seen))
			if err != nil {
				return err
			}
			for _, s := range rows {
				if *asJSON {
					if err := out.row(s.Raw); err != nil {
						return err
					}
					continue
				}
				t.row(middle(oneLine(s.SessionKey, 0), keyColumns), thousands(s.Head), thousands(s.Epoch), thousands(s.Tokens), orDash(s.TokenBudget), orDash(s.Debt), age(c.now(), s.UpdatedAt))
			}
			after, seen = next, seen+len(rows)
			if !*asJSON {
				if err := t.flush(); err != nil {
					return err
				}
			}
			if next == "" || *limit > 0 && seen >= *limit {
				break
			}
		}
		if *asJSON {
			return out.end(after)
		}
		return nil
	})
}

// jsonFlag declares --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON for machines")
}

// pageOf is the size of the next page when at most limit rows are wanted.
func pageOf(limit, seen int) int {
	if limit <= 0 {
		return pageRows
	}
	return min(pageRows, limit-seen)
}

// orDash hides a number that is not known.
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return thousands(n)
}
