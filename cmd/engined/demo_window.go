package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/client"
)

// view is a window for one budget.
type view struct {
	budget int
	contextengine.AssembleResult
}

func (d *demo) look(ctx context.Context) ([]view, error) {
	var views []view
	t := newTable(d.c.out, left("  "), right("BUDGET"), right("TOKENS"), right("MESSAGES"), right("SUMMARIES"), right("LEFT OUT"), right("EPOCH"))
	for _, budget := range demoBudgets {
		res, _, err := d.node.Assemble(ctx, d.key, contextengine.AssembleParams{TokenBudget: &budget, Explain: true})
		if err != nil {
			return nil, err
		}
		if res.OverBudget != nil || res.EstimatedTokens > budget {
			return nil, fmt.Errorf("demo: the window for %d tokens has %d", budget, res.EstimatedTokens)
		}
		t.row("", thousands(budget), thousands(res.EstimatedTokens), thousands(len(res.Messages)),
			strconv.Itoa(summariesIn(res)), thousands(res.LeftOut), strconv.FormatInt(res.Epoch, 10))
		views = append(views, view{budget, res})
	}
	return views, t.flush()
}

// summariesIn counts the summaries of a window.
func summariesIn(res contextengine.AssembleResult) int {
	shown, _ := explanations(res)
	n := 0
	for _, e := range shown {
		if e.Kind == "summary" {
			n++
		}
	}
	return n
}

func (d *demo) lookBefore(ctx context.Context) (err error) {
	fmt.Fprintln(d.c.out, "\n3. Windows before the compaction: what does not fit is left out")
	d.before, err = d.look(ctx)
	return err
}

// endTurn reports a budget, which puts the session into debt, and waits for a
// worker to pay.
func (d *demo) endTurn(ctx context.Context) error {
	fmt.Fprintf(d.c.out, "\n4. The turn is completed, with a budget of %s tokens\n", thousands(demoBudget))
	res, err := d.node.AfterTurn(ctx, d.key, demoBudget)
	if err != nil {
		return err
	}
	if res.Compaction == contextengine.CompactionNone {
		return errors.New("demo: the turn left no compaction owed")
	}
	d.okf("answered at once, compaction %s", res.Compaction)
	began := d.c.now()
	s, err := d.awaitEpoch(ctx, res.Epoch)
	if err != nil {
		return err
	}
	if d.app != nil {
		st := d.app.bus.Stats()
		d.okf("NATS: %d ids published, %s delivered to the worker", st.Published, plural(int64(st.Delivered), "job"))
	}
	d.okf("epoch %d → %d after %s", res.Epoch, s.Epoch, d.c.now().Sub(began).Round(10*time.Millisecond))
	for _, a := range s.Attempts {
		d.okf("worker %s: %s in %s", oneLine(a.Worker, 40), oneLine(a.Outcome, 0), a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond))
	}
	return nil
}

// awaitEpoch polls until the session is beyond an epoch and owes nothing.
func (d *demo) awaitEpoch(ctx context.Context, epoch int64) (client.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	for {
		s, err := d.node.Session(ctx, d.key)
		if err != nil {
			return s, err
		}
		if s.Epoch > epoch && s.Debt == 0 {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("demo: no worker compacted the session within %s; is one running?", demoPatience)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *demo) lookAfter(ctx context.Context) error {
	fmt.Fprintln(d.c.out, "\n5. Windows after it: summaries stand for what is older")
	after, err := d.look(ctx)
	if err != nil {
		return err
	}
	for i, v := range after {
		if v.Epoch <= d.before[i].Epoch || summariesIn(v.AssembleResult) == 0 {
			return fmt.Errorf("demo: the window for %d tokens shows no summary", v.budget)
		}
	}
	largest := after[len(after)-1]
	if was := d.before[len(d.before)-1]; largest.EstimatedTokens >= was.EstimatedTokens {
		return fmt.Errorf("demo: the window did not get smaller: %d, then %d tokens", was.EstimatedTokens, largest.EstimatedTokens)
	}
	if largest.LeftOut != 0 {
		return fmt.Errorf("demo: %d messages are neither shown nor summarized", largest.LeftOut)
	}
	d.okf("at %s nothing is left out any more", thousands(largest.budget))
	return nil
}
