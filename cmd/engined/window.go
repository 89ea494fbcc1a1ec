package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/config"
)

func (c *cli) window() *cobra.Command {
	cmd := &cobra.Command{Use: "window KEY", Short: "Show what the model sees, or saw", Args: oneArg}
	asJSON := jsonFlag(cmd)
	budget := cmd.Flags().Int("budget", 0, "token budget; by default the session's own")
	asOf := cmd.Flags().Int64("as-of", 0, "the window as it was when this seq was the newest")
	explain := cmd.Flags().Bool("explain", false, "say why each message is in the window or not")
	return c.command(cmd, config.Client, nil, func(ctx context.Context, cfg config.Config, args []string) error {
		p := contextengine.AssembleParams{Explain: *explain || !*asJSON}
		if cmd.Flags().Changed("budget") {
			p.TokenBudget = budget
		}
		if cmd.Flags().Changed("as-of") {
			p.AsOfSeq = asOf
		}
		cl, err := node(cfg)
		if err != nil {
			return err
		}
		defer cl.Close()
		// assemble answers an unknown key with an empty window.
		if _, err := cl.Session(ctx, args[0]); err != nil {
			return err
		}
		res, raw, err := cl.Assemble(ctx, args[0], p)
		if err != nil {
			return err
		}
		c.beyondHead("as-of", p.AsOfSeq, res.Head)
		if *asJSON {
			return printRaw(c.out, raw)
		}
		return c.printWindow(res, *explain)
	})
}

// beyondHead says that a seq is none yet: what is shown is the window of now.
func (c *cli) beyondHead(flag string, seq *int64, head int64) {
	if seq != nil && *seq > head {
		fmt.Fprintf(c.err, "engined: --%s %d is beyond the head, %d: this is the window of now\n", flag, *seq, head)
	}
}

func (c *cli) printWindow(res contextengine.AssembleResult, explain bool) error {
	shown, leftOut := explanations(res)
	heads := []column{right("SEQ"), left("ROLE"), left("KIND"), right("TOKENS")}
	if explain {
		heads = append(heads, left("WHY"))
	}
	t := newTable(c.out, append(heads, left("TEXT"))...)
	for i, m := range res.Messages {
		e := shown[i]
		cells := []string{seqText(e.Seq), roleOf(m), e.Kind, orDash(int64(e.Tokens))}
		used := 50
		if explain {
			cells, used = append(cells, e.Reason), used+40
		}
		t.row(append(cells, messageLine(m, room(c.out, used)))...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if explain && len(leftOut) > 0 {
		fmt.Fprintln(c.out, "\nLeft out:")
		t := newTable(c.out, right("SEQ"), left("KIND"), right("TOKENS"), left("WHY"))
		for _, r := range runs(leftOut) {
			seqs := strconv.FormatInt(r.Seq, 10)
			if r.to > r.Seq {
				seqs += "–" + strconv.FormatInt(r.to, 10)
			}
			t.row(seqs, r.Kind, thousands(r.Tokens), r.Reason)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.out)
	return c.printTotals(res)
}

func (c *cli) printTotals(res contextengine.AssembleResult) error {
	epoch, fingerprint := strconv.FormatInt(res.Epoch, 10), "-"
	if p := res.ContextProjection; p != nil {
		epoch, fingerprint = p.Epoch, p.Fingerprint
	}
	fmt.Fprintf(c.out, "%s, %s tokens · head %s · epoch %s · fingerprint %s\n",
		plural(len(res.Messages), "message"), thousands(res.EstimatedTokens), thousands(res.Head), epoch, fingerprint)
	if res.LeftOut > 0 {
		fmt.Fprintf(c.out, "%s of the log neither shown nor summarized\n", plural(res.LeftOut, "message"))
	}
	if o := res.OverBudget; o != nil {
		fmt.Fprintf(c.out, "OVER BUDGET: the smallest valid window needs %s tokens, the budget is %s\n", thousands(o.Needed), thousands(o.Budget))
		for _, it := range o.Items {
			fmt.Fprintf(c.out, "  seq %s: %s tokens\n", seqText(it.Seq), thousands(it.Tokens))
		}
	}
	return nil
}

// seqText writes a seq as it is typed in other commands.
func seqText(seq int64) string {
	if seq == 0 {
		return "-"
	}
	return strconv.FormatInt(seq, 10)
}

// explanations gives each message of the window its line, in order, and those
// of what is left out. A node that says nothing about a message leaves it empty.
func explanations(res contextengine.AssembleResult) (shown, leftOut []contextengine.Explanation) {
	for _, e := range res.Explanation {
		if e.Shown {
			shown = append(shown, e)
		} else {
			leftOut = append(leftOut, e)
		}
	}
	shown = inOneMessage(shown)
	if len(shown) != len(res.Messages) {
		shown = make([]contextengine.Explanation, len(res.Messages))
	}
	return shown, leftOut
}

// run is what is left out up to a seq, for one reason.
type run struct {
	contextengine.Explanation
	to int64
}

// runs has one line for neighbours that are left out alike: of a long session
// it may be hundreds, and they would push the window off the screen.
func runs(leftOut []contextengine.Explanation) []run {
	var out []run
	for _, e := range leftOut {
		if n := len(out) - 1; n >= 0 && e.Seq == out[n].to+1 && e.SessionKey == out[n].SessionKey && e.Kind == out[n].Kind && e.Reason == out[n].Reason {
			out[n].to, out[n].Tokens = e.Seq, out[n].Tokens+e.Tokens
			continue
		}
		out = append(out, run{e, e.Seq})
	}
	return out
}

// inOneMessage has one line for all passages of a message; it is no event.
func inOneMessage(shown []contextengine.Explanation) []contextengine.Explanation {
	var out []contextengine.Explanation
	for _, e := range shown {
		if e.Kind != "passage" {
			out = append(out, e)
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].Kind == passages {
			out[n].Tokens += e.Tokens
			continue
		}
		out = append(out, contextengine.Explanation{Kind: passages, Tokens: e.Tokens, Shown: true, Reason: "older passages that match what is asked"})
	}
	return out
}

const passages = "passages"
