package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
)

// expand shows a summary and what it covers, down to the messages.
func (d *demo) expand(ctx context.Context) error {
	fmt.Fprintln(d.c.out, "\n6. A summary, expanded")
	covered, newest, err := d.covered(ctx)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(newest.Text), "\n") {
		if i == 8 {
			fmt.Fprintln(d.c.out, "   │ …")
			break
		}
		fmt.Fprintf(d.c.out, "   │ %s\n", oneLine(line, 100))
	}
	sources, err := d.node.Sources(ctx, d.key, newest.ID)
	if err != nil {
		return err
	}
	d.okf("summary %d of level %d, %s tokens, was made from %s", newest.ID, newest.Level, thousands(newest.Tokens), plural(len(sources), "source"))
	d.okf("the live summaries lead back to %s", plural(len(covered), "message"))
	return d.complete(ctx, covered)
}

// covered walks the summary tree down from the live summaries.
func (d *demo) covered(ctx context.Context) (map[int64]bool, client.Summary, error) {
	summaries, _, err := d.node.Summaries(ctx, d.key)
	if err != nil {
		return nil, client.Summary{}, err
	}
	seqs := map[int64]bool{}
	var newest client.Summary
	var queue []int64
	for _, s := range summaries {
		if s.Live {
			queue = append(queue, s.ID)
			newest = s
		}
	}
	if len(queue) == 0 {
		return nil, newest, errors.New("demo: no summary is live")
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		sources, err := d.node.Sources(ctx, d.key, id)
		if err != nil {
			return nil, newest, err
		}
		for _, s := range sources {
			if s.Kind == "summary" {
				queue = append(queue, s.ID)
			} else {
				seqs[s.Seq] = true
			}
		}
	}
	return seqs, newest, nil
}

// complete checks that each message is in the window, behind a summary, or
// reported with its reason.
func (d *demo) complete(ctx context.Context, covered map[int64]bool) error {
	budget := demoBudget
	res, _, err := d.node.Assemble(ctx, d.key, contextengine.AssembleParams{TokenBudget: &budget, Explain: true})
	if err != nil {
		return err
	}
	told := map[int64]bool{}
	for _, e := range res.Explanation {
		told[e.Seq] = true
	}
	for seq := int64(1); seq <= d.headThen; seq++ {
		if !covered[seq] && !told[seq] {
			return fmt.Errorf("demo: message %d is neither shown nor covered nor reported", seq)
		}
	}
	d.okf("every message is shown, covered or reported with its reason")
	return nil
}

// verify checks that the log still is what was sent.
func (d *demo) verify(ctx context.Context) error {
	fmt.Fprintln(d.c.out, "\n7. Nothing is lost")
	if err := d.compareBytes(ctx); err != nil {
		return err
	}
	for _, was := range d.before {
		res, _, err := d.node.Assemble(ctx, d.key, contextengine.AssembleParams{TokenBudget: &was.budget, AsOfSeq: &d.headThen})
		if err != nil {
			return err
		}
		if len(res.Messages) != len(was.Messages) || res.ContextProjection.Fingerprint != was.ContextProjection.Fingerprint {
			return fmt.Errorf("demo: as of seq %d the window for %d tokens is another one", d.headThen, was.budget)
		}
		for i := range res.Messages {
			if !bytes.Equal(res.Messages[i], was.Messages[i]) {
				return fmt.Errorf("demo: as of seq %d message %d of the window is another one", d.headThen, i+1)
			}
		}
	}
	d.okf("as of seq %s the windows are those from before, byte for byte", thousands(d.headThen))
	r, err := d.importFile(ctx, filepath.Join(d.dir, "session.jsonl"))
	if err != nil {
		return err
	}
	if r.New != 0 || r.AlreadyThere != len(d.sent) {
		return fmt.Errorf("demo: importing again stored %d messages", r.New)
	}
	d.okf("importing the same file again adds nothing")
	return nil
}

func (d *demo) compareBytes(ctx context.Context) error {
	same := 0
	for after := int64(0); ; {
		rows, next, err := d.node.Events(ctx, d.key, after, pageRows)
		if err != nil {
			return err
		}
		for _, e := range rows {
			if e.Message == nil {
				continue
			}
			if same == len(d.sent) || !bytes.Equal(e.Message, d.sent[same]) {
				return fmt.Errorf("demo: event %d is not message %d of the transcript", e.Seq, same+1)
			}
			same++
		}
		if after = next; next == 0 {
			break
		}
	}
	if same != len(d.sent) {
		return fmt.Errorf("demo: %d of %d messages came back", same, len(d.sent))
	}
	d.okf("all %s come back byte for byte", plural(same, "message"))
	return nil
}
