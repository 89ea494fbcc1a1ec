package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) events() *cobra.Command {
	cmd := &cobra.Command{Use: "events KEY", Short: "List a session's log", Args: oneArg}
	asJSON := jsonFlag(cmd)
	after := cmd.Flags().Int64("after", 0, "begin after this seq")
	limit := limitFlag(cmd, 0, "most rows; 0 is all")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		t := eventTable(c)
		at := *after
		_, err = list(c, listing[client.Event]{
			name: "events", limit: *limit, asJSON: *asJSON, flush: t.flush,
			page: func(_ string, most int) (rows []client.Event, next string, err error) {
				rows, at, err = cl.Events(ctx, args[0], at, most)
				if at > 0 {
					next = strconv.FormatInt(at, 10)
				}
				return rows, next, err
			},
			raw: func(e *client.Event) json.RawMessage { return e.Raw },
			show: func(e *client.Event) error {
				t.row(c.eventCells(*e)...)
				return nil
			},
		})
		return err
	})
}

func (c *cli) tail() *cobra.Command {
	cmd := &cobra.Command{Use: "tail KEY", Short: "Show the newest events of a session, and with -f those to come", Args: oneArg}
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object a line")
	follow := cmd.Flags().BoolP("follow", "f", false, "go on with what comes")
	n := cmd.Flags().Int64P("lines", "n", 10, "how many events to begin with")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		if *n < 0 {
			return usageError{fmt.Errorf("--lines: %d is below 0", *n)}
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		s, err := cl.Session(ctx, args[0])
		if err != nil {
			return err
		}
		t := eventTable(c)
		last := max(0, s.Head-*n)
		see := func(e client.Event) error {
			last = e.Seq
			if *asJSON {
				return printRaw(c.out, e.Raw)
			}
			t.row(c.eventCells(e)...)
			return t.flush()
		}
		for last < s.Head {
			rows, next, err := cl.Events(ctx, args[0], last, pageRows)
			if err != nil {
				return err
			}
			for _, e := range rows {
				if err := see(e); err != nil {
					return err
				}
			}
			if next == 0 {
				break
			}
		}
		if !*follow {
			return nil
		}
		return c.follow(ctx, cl, args[0], &last, see)
	})
}

func eventTable(c *cli) *table {
	return newTable(c.out, right("SEQ"), left("TYPE"), right("EPOCH"), left("ROLE"), right("TOKENS"), left("TEXT"))
}

func (c *cli) eventCells(e client.Event) []string {
	width := room(c.out, 55)
	text := oneLine(eventText(e), width)
	if e.Message != nil {
		text = messageLine(e.Message, width)
	}
	return []string{
		strconv.FormatInt(e.Seq, 10), oneLine(e.Type, 0), thousands(e.Epoch), oneLine(e.Role, 0), orDash(e.Tokens),
		text,
	}
}
