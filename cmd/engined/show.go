package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) show() *cobra.Command {
	cmd := &cobra.Command{Use: "show KEY", Short: "Show a session and the summaries in its window", Args: oneArg}
	asJSON := jsonFlag(cmd)
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		s, err := cl.Session(ctx, args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return printRaw(c.out, s.Raw)
		}
		if err := c.showFields(s.Raw); err != nil {
			return err
		}
		if err := c.showAttempts(s.Attempts); err != nil {
			return err
		}
		summaries, _, err := cl.Summaries(ctx, args[0])
		if err != nil {
			return err
		}
		live := slices.DeleteFunc(slices.Clone(summaries), func(s client.Summary) bool { return !s.Live })
		if err := c.showSummaries(live); err != nil || len(live) == len(summaries) {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s more in no window, merged or undone: engined summaries lists them\n", thousands(len(summaries)-len(live)))
		return err
	})
}

func (c *cli) showAttempts(attempts []client.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	fmt.Fprintln(c.out)
	t := newTable(c.out, left("COMPACTION"), right("EPOCH"), left("WORKER"), right("TOOK"), right("AGE"), left("ERROR"))
	for _, a := range attempts {
		t.row(oneLine(a.Outcome, 0), thousands(a.Epoch), oneLine(a.Worker, 0),
			a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond).String(), age(c.now(), a.EndedAt), oneLine(a.Error, room(c.out, 60)))
	}
	return t.flush()
}

func (c *cli) showSummaries(summaries []client.Summary) error {
	if len(summaries) == 0 {
		return nil
	}
	fmt.Fprintln(c.out)
	t := newTable(c.out, left("SUMMARY"), left("LIVE"), right("LEVEL"), right("EPOCH"), right("TOKENS"), left("BY"), left("TEXT"))
	degraded := 0
	for _, s := range summaries {
		live := "no"
		if s.Live {
			live = "yes"
		}
		by := oneLine(s.Summarizer, 20)
		if s.Degraded {
			by += " (last resort)"
			if s.Live {
				degraded++
			}
		}
		t.row(seqText(s.ID), live, thousands(s.Level), thousands(s.Epoch), orDash(s.Tokens), by, oneLine(s.Text, room(c.out, 65)))
	}
	if err := t.flush(); err != nil || degraded == 0 {
		return err
	}
	_, err := fmt.Fprintf(c.out, "%s of the live summaries by the last resort, because no model could: written again when one can\n", thousands(degraded))
	return err
}

// eachMember visits the members of an object in order.
func eachMember(raw json.RawMessage, visit func(name string, value json.RawMessage)) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return errors.New("the node's answer is not an object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		visit(fmt.Sprint(name), value)
	}
	return nil
}
