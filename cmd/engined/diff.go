package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/internal/config"
)

func (c *cli) diff() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff KEY", Short: "Compare two windows of a session", Args: oneArg,
		Long: words(
			"Compare what the model saw when --from was the newest seq with what it saw at --to (by default the head), message by",
			"message. With --from-budget or --to-budget the windows differ in their budget instead, or as well.",
		),
	}
	asJSON := jsonFlag(cmd)
	from := cmd.Flags().Int64("from", 0, "the first window is that of this seq; by default the head")
	to := cmd.Flags().Int64("to", 0, "the second window is that of this seq; by default the head")
	fromBudget := cmd.Flags().Int("from-budget", 0, "token budget of the first window; by default the session's own then")
	toBudget := cmd.Flags().Int("to-budget", 0, "token budget of the second window; by default the session's own then")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		differs := false
		for _, flag := range []string{"from", "to", "from-budget", "to-budget"} {
			differs = differs || cmd.Flags().Changed(flag)
		}
		if !differs {
			return usageError{errors.New("say what differs: --from, --to, --from-budget or --to-budget")}
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		var d windowDiff
		ask := func(asOf, budget string, seq *int64, tokens *int) (windowSide, error) {
			p := contextengine.AssembleParams{Explain: true}
			if cmd.Flags().Changed(asOf) {
				p.AsOfSeq = seq
			}
			if cmd.Flags().Changed(budget) {
				p.TokenBudget = tokens
			}
			side, err := sideOf(ctx, cl, args[0], p)
			if err == nil {
				c.beyondHead(asOf, p.AsOfSeq, side.Head)
			}
			return side, err
		}
		if _, err := cl.Session(ctx, args[0]); err != nil {
			return err
		}
		if d.From, err = ask("from", "from-budget", from, fromBudget); err != nil {
			return err
		}
		if d.To, err = ask("to", "to-budget", to, toBudget); err != nil {
			return err
		}
		d.compare()
		if *asJSON {
			return printJSON(c.out, d)
		}
		return c.printDiff(d)
	})
}

// windowSide is one of the windows.
type windowSide struct {
	Head        int64  `json:"head"`
	Epoch       string `json:"epoch"`
	Fingerprint string `json:"fingerprint"`
	Tokens      int    `json:"tokens"`
	Messages    int    `json:"messages"`

	lines []diffLine
}

// diffLine is a message of a window; Op is " " in both, "-" only in the first,
// "+" only in the second, "~" in both but shown otherwise.
type diffLine struct {
	Op  string `json:"op"`
	Seq int64  `json:"seq"`
	// SessionKey is the ancestor's whose event it is; absent for the session's own.
	SessionKey string          `json:"sessionKey,omitempty"`
	Kind       string          `json:"kind"`
	Tokens     int             `json:"tokens"`
	Message    json.RawMessage `json:"-"`
}

// windowDiff is the answer. CommonPrefix counts the messages with which both begin.
type windowDiff struct {
	From         windowSide `json:"from"`
	To           windowSide `json:"to"`
	CommonPrefix int        `json:"commonPrefix"`
	Lines        []diffLine `json:"lines"`
}

func sideOf(ctx context.Context, cl *client.Client, key string, p contextengine.AssembleParams) (windowSide, error) {
	res, _, err := cl.Assemble(ctx, key, p)
	if err != nil {
		return windowSide{}, err
	}
	s := windowSide{Head: res.Head, Tokens: res.EstimatedTokens, Messages: len(res.Messages)}
	if c := res.ContextProjection; c != nil {
		s.Epoch, s.Fingerprint = c.Epoch, c.Fingerprint
	}
	shown, _ := explanations(res)
	for i, m := range res.Messages {
		if shown[i].Kind == "" {
			return s, errors.New("the node does not say which event each message of its window is")
		}
		s.lines = append(s.lines, diffLine{Seq: shown[i].Seq, SessionKey: shown[i].SessionKey, Kind: shown[i].Kind, Tokens: shown[i].Tokens, Message: m})
	}
	return s, nil
}

// compare lays the windows side by side. What both show they show in the same
// order, since the log has only one, so a walk along the second suffices.
func (d *windowDiff) compare() {
	// What was inherited has its ancestor's seqs, and what is no event has none.
	type name struct {
		seq           int64
		session, kind string
	}
	nameOf := func(l diffLine) name {
		if l.Seq > 0 {
			l.Kind = ""
		}
		return name{l.Seq, l.SessionKey, l.Kind}
	}
	at := make(map[name]int, len(d.From.lines))
	for i, l := range d.From.lines {
		at[nameOf(l)] = i
	}
	next := 0
	for i, l := range d.To.lines {
		j, both := at[nameOf(l)]
		if !both || j < next {
			l.Op = "+"
			d.Lines = append(d.Lines, l)
			continue
		}
		for ; next < j; next++ {
			gone := d.From.lines[next]
			gone.Op = "-"
			d.Lines = append(d.Lines, gone)
		}
		next = j + 1
		l.Op = " "
		if string(l.Message) != string(d.From.lines[j].Message) {
			l.Op = "~"
		}
		if l.Op == " " && i == j && i == d.CommonPrefix {
			d.CommonPrefix++
		}
		d.Lines = append(d.Lines, l)
	}
	for ; next < len(d.From.lines); next++ {
		gone := d.From.lines[next]
		gone.Op = "-"
		d.Lines = append(d.Lines, gone)
	}
}

// printDiff shows what differs; runs of what both show become one line.
func (c *cli) printDiff(d windowDiff) error {
	t := newTable(c.out, left(""), right("SEQ"), left("ROLE"), left("KIND"), right("TOKENS"), left("TEXT"))
	same := 0
	flush := func() {
		if same > 0 {
			t.row("", "", "", "", "", fmt.Sprintf("… %s in both", plural(same, "message")))
			same = 0
		}
	}
	differ := false
	for _, l := range d.Lines {
		if l.Op == " " {
			same++
			continue
		}
		differ = true
		flush()
		t.row(l.Op, seqText(l.Seq), roleOf(l.Message), l.Kind, orDash(int64(l.Tokens)), messageLine(l.Message, room(c.out, 52)))
	}
	flush()
	if err := t.flush(); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		side windowSide
	}{{"from", d.From}, {"to", d.To}} {
		fmt.Fprintf(c.out, "%-4s  %s, %s tokens · head %s · epoch %s · fingerprint %s\n", s.name,
			plural(s.side.Messages, "message"), thousands(s.side.Tokens), thousands(s.side.Head), s.side.Epoch, s.side.Fingerprint)
	}
	if !differ {
		fmt.Fprintln(c.out, "The windows are the same.")
		return nil
	}
	fmt.Fprintf(c.out, "Both begin with the same %s.\n", plural(d.CommonPrefix, "message"))
	return nil
}
