package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/config"
)

const pageRows = 200

func (c *cli) sessions() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions", Short: "List the sessions of a tenant",
	}
	asJSON := jsonFlag(cmd)
	limit := limitFlag(cmd, 0, "most rows; 0 is all")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, _ []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		// Keys are last and whole, however long: other commands are given them.
		t := newTable(c.out, right("HEAD"), right("EPOCH"), right("TOKENS"), right("BUDGET"), right("OWES"), right("AGE"), left("SESSION"))
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
				t.row(thousands(s.Head), thousands(s.Epoch), thousands(s.Tokens), orDash(s.TokenBudget), orDash(s.Debt), age(c.now(), s.UpdatedAt), oneLine(s.SessionKey, 0))
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
		c.sayMore(after != "", seen)
		return nil
	})
}

// sayMore says that a listing was cut, so that nobody takes it for the whole.
func (c *cli) sayMore(more bool, seen int) {
	if more {
		fmt.Fprintf(c.err, "engined: there are more; --limit %d shows more, --limit 0 all\n", 2*seen)
	}
}

// jsonFlag declares --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON for machines")
}

// limitFlag is how many rows a listing has at most.
func limitFlag(cmd *cobra.Command, most int, usage string) *int {
	n := limit(most)
	cmd.Flags().Var(&n, "limit", usage)
	return (*int)(&n)
}

type limit int

func (l *limit) String() string { return strconv.Itoa(int(*l)) }
func (l *limit) Type() string   { return "int" }

func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("a number of rows, 0 or more")
	}
	*l = limit(n)
	return nil
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
