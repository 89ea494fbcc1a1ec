package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

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
		_, err = list(c, listing[client.Session]{
			name: "sessions", limit: *limit, asJSON: *asJSON, flush: t.flush,
			page: func(after string, most int) ([]client.Session, string, error) { return cl.Sessions(ctx, after, most) },
			raw:  func(s *client.Session) json.RawMessage { return s.Raw },
			show: func(s *client.Session) error {
				t.row(thousands(s.Head), thousands(s.Epoch), thousands(s.Tokens), orDash(s.TokenBudget), orDash(s.Debt), age(c.now(), s.UpdatedAt), oneLine(s.SessionKey, 0))
				return nil
			},
		})
		return err
	})
}

// orDash hides a number that is not known.
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return thousands(n)
}
