package transcripts_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// TestReplay gives each transcript to a node as it happened, a model call at a
// time, and looks at the window before each call: of a session that is never
// compacted with every budget, and of sessions that are compacted as they go,
// one for each budget.
func TestReplay(t *testing.T) {
	t.Parallel()
	replays(t, bundled(t))
}

// TestLargeReplay does the same with the transcripts that ENGINED_TRANSCRIPTS
// names, with a few of a file of many runs.
func TestLargeReplay(t *testing.T) {
	t.Parallel()
	replays(t, large(t))
}

func replays(t *testing.T, files []*file) {
	t.Helper()
	l := newLab(t)
	t.Run("files", func(t *testing.T) {
		for _, f := range files {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				for i, c := range f.sessions {
					if every := len(f.sessions) / 10; every > 1 && i%every != 0 {
						continue
					}
					r := &replay{lab: l, j: newJournal(c.key+"@all", c), budgets: budgets}
					r.report(t, f, r.run(t.Context()))
					for _, b := range budgets {
						r := &replay{lab: l, j: newJournal(fmt.Sprint(c.key, "@", b), c), budgets: []int{b}, pays: true}
						r.report(t, f, r.run(t.Context()))
					}
				}
			})
		}
	})
}

// replay is one way through a conversation.
type replay struct {
	*lab
	j       *journal
	budgets []int
	// pays: turns end with their budget, and what they owe is paid.
	pays bool

	steps int
	last  []*seen
	was   []*seen
	stats []passage
}

// passage is what a replay met at one budget.
type passage struct {
	windows int
	// changed counts the windows that do not begin with the one before; early
	// are those where less than an eighth of the budget came since the change
	// before.
	changed, early, epochs int
	underused              int
	over                   []string

	grown int
}

func (r *replay) report(t *testing.T, f *file, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s, step %d: %v", r.j.key, r.steps, err)
	}
	for i := range r.stats {
		r.stats[i].epochs = r.j.epochs
		measured.passed(f, r.budgets[i], r.pays, &r.stats[i])
		if over := r.stats[i].over; len(over) > 0 {
			t.Logf("%s: over budget: %q", r.j.key, over)
		}
	}
}

func (r *replay) run(ctx context.Context) error {
	r.last, r.stats = make([]*seen, len(r.budgets)), make([]passage, len(r.budgets))
	from := 0
	for to := 1; to <= len(r.j.messages); to++ {
		// A model is called where an assistant message comes next. Several in a
		// row are the parts of one answer.
		if to < len(r.j.messages) && (r.j.read[to].role != "assistant" || r.j.read[to-1].role == "assistant") {
			continue
		}
		if err := r.step(ctx, from, to); err != nil {
			return err
		}
		from = to
	}
	return r.sameAsOf(ctx, r.j, r.sample())
}

// step appends messages and looks at the windows.
func (r *replay) step(ctx context.Context, from, to int) error {
	r.steps++
	if err := r.append(ctx, from, to); err != nil {
		return err
	}
	if err := r.follow(ctx, r.j); err != nil {
		return err
	}
	for i, b := range r.budgets {
		res, err := r.assemble(ctx, r.node, r.j.key, b, nil, true)
		if err != nil {
			return err
		}
		w, err := r.check(r.j, b, res)
		if err != nil {
			return fmt.Errorf("window for %d: %w", b, err)
		}
		if i > 0 && w.messages() < r.last[i-1].messages() {
			return fmt.Errorf("%d messages in a window for %d, %d in one for %d", r.last[i-1].messages(), r.budgets[i-1], w.messages(), b)
		}
		if err := r.stats[i].compare(r.last[i], w, r.j.seqs[from]); err != nil {
			return fmt.Errorf("window for %d: %w", b, err)
		}
		r.last[i] = w
		r.was = append(r.was, w)
	}
	return nil
}

// append commits messages as a turn and pays what it owes.
func (r *replay) append(ctx context.Context, from, to int) error {
	p := contextengine.CommitTurnParams{
		Session: on(r.j.key), AdvancementKey: fmt.Sprint("step ", to), Messages: r.j.messages[from:to],
	}
	if r.pays {
		p.TokenBudget = &r.budgets[0]
	}
	res, err := r.node.CommitTurn(ctx, p)
	if err != nil || !r.pays || res.Compaction == contextengine.CompactionNone {
		return err
	}
	s, err := r.store.Session(ctx, tenant, r.j.key)
	if err != nil {
		return err
	}
	done, err := r.other.Compactor.Owed(ctx, s, store.Debt{Budget: int64(r.budgets[0])})
	if err != nil {
		return fmt.Errorf("compaction: %w", err)
	}
	if !done.Compacted {
		return r.store.ForgiveDebt(ctx, tenant, s.SID)
	}
	return nil
}

// compare holds a window against the one before it; the messages from a seq on
// are new.
func (p *passage) compare(before, now *seen, from int64) error {
	p.windows++
	if now.over {
		p.over = append(p.over, fmt.Sprintf("window %d: %d (counted %d) of %d",
			p.windows, now.res.EstimatedTokens, now.tokens, now.budget))
	}
	if now.underused {
		p.underused++
	}
	for _, e := range now.res.Explanation {
		if e.Seq >= from && e.Kind == "message" {
			p.grown += e.Tokens
		}
	}
	if before == nil {
		return nil
	}
	if prefix(&before.res, &now.res) {
		return nil
	}
	if *before.res.ContextProjection == *now.res.ContextProjection {
		return errors.New("the fingerprint is the same and the earlier window is no prefix")
	}
	p.changed++
	if p.grown < now.budget/8 {
		p.early++
	}
	p.grown = 0
	return nil
}

// sample is some of the windows that were seen, the last ones with them.
func (r *replay) sample() []*seen {
	const most = 24
	every := len(r.was)/most + 1
	var out []*seen
	for i, w := range r.was {
		if i%every == 0 || i >= len(r.was)-2 {
			out = append(out, w)
		}
	}
	return out
}
