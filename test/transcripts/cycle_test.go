package transcripts_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(finish)) }

var budgets = []int{2000, 8000, 32_000, 128_000}

// TestTranscripts takes each transcript through the whole cycle at each
// budget: import, window, the end of a turn, the compaction that it owes, a
// forced one, and the windows after each.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	cycles(t, newLab(t), bundled(t), &measured)
}

// TestLargeTranscripts does the same with the transcripts that
// ENGINED_TRANSCRIPTS names.
func TestLargeTranscripts(t *testing.T) {
	t.Parallel()
	cycles(t, newLab(t), large(t), &measured)
}

func cycles(t *testing.T, l *lab, files []*file, into *results) {
	t.Helper()
	t.Run("files", func(t *testing.T) {
		for _, f := range files {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				at := budgets
				if len(f.sessions) > 50 {
					at = budgets[:2] // many small ones: the larger budgets hold them whole
				}
				for _, budget := range at {
					into.cycled(l.all(t, f, budget))
				}
			})
		}
	})
}

// all takes every session of a file through the cycle at one budget.
func (l *lab) all(t *testing.T, f *file, budget int) *row {
	t.Helper()
	r := &row{file: f, budget: budget}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(4)
	for _, c := range f.sessions {
		g.Go(func() error {
			o, err := l.cycle(t.Context(), c, budget)
			if err != nil {
				t.Errorf("%s at %d: %v", c.key, budget, err)
			}
			mu.Lock()
			defer mu.Unlock()
			r.take(o)
			return nil
		})
	}
	_ = g.Wait() // its functions return no errors
	return r
}

// outcome is what became of one session at one budget.
type outcome struct {
	// before the compaction, after the one that was owed, after a forced one.
	before, after, forced *seen
	// whole is the estimate of the whole conversation.
	whole             int
	epochs, summaries int
	// stuck tells why an owed compaction did nothing.
	stuck string
}

func (l *lab) cycle(ctx context.Context, c *conversation, budget int) (*outcome, error) {
	o := &outcome{}
	key := fmt.Sprint(c.key, "@", budget)
	if n, _, err := l.ingest(ctx, key, c); err != nil || n != len(c.messages) {
		return o, fmt.Errorf("import of %d messages: %d stored, %w", len(c.messages), n, err)
	}
	j := newJournal(key, c)
	if err := l.follow(ctx, j); err != nil {
		return o, err
	}
	if len(j.seqs) != len(c.messages) {
		return o, fmt.Errorf("%d of %d messages came back", len(j.seqs), len(c.messages))
	}
	before, err := l.ladder(ctx, j)
	if err != nil {
		return o, fmt.Errorf("before: %w", err)
	}
	o.before = before[slices.Index(budgets, budget)]
	whole, err := l.assemble(ctx, l.other, key, 1_000_000_000, nil, false)
	if err != nil {
		return o, err
	}
	o.whole = whole.EstimatedTokens

	n, head, err := l.ingest(ctx, key, c)
	if err != nil || n != 0 || head != j.after {
		return o, fmt.Errorf("import again: %d stored, head %d after %d, %w", n, head, j.after, err)
	}

	if o.stuck, err = l.pay(ctx, key, budget); err != nil {
		return o, err
	}
	if o.after, err = l.look(ctx, j, budget); err != nil {
		return o, fmt.Errorf("after: %w", err)
	}
	o.epochs, o.summaries = j.epochs, len(j.live)
	if _, err := l.ladder(ctx, j); err != nil {
		return o, fmt.Errorf("after: %w", err)
	}
	if err := l.force(ctx, j, budget, o); err != nil {
		return o, fmt.Errorf("forced: %w", err)
	}
	return o, l.sameAsOf(ctx, j, before)
}

// pay ends a turn and pays what the session owes, as a worker does.
func (l *lab) pay(ctx context.Context, key string, budget int) (stuck string, err error) {
	const rounds = 5
	for range rounds {
		res, err := l.node.AfterTurn(ctx, contextengine.AfterTurnParams{Session: on(key), TokenBudget: &budget})
		if err != nil || res.Compaction == contextengine.CompactionNone {
			return "", err
		}
		s, err := l.store.Session(ctx, tenant, key)
		if err != nil {
			return "", err
		}
		done, err := l.other.Compactor.Owed(ctx, s, store.Debt{Budget: int64(budget)})
		if err != nil {
			return "", fmt.Errorf("compaction: %w", err)
		}
		if !done.Compacted {
			return done.Reason, l.store.ForgiveDebt(ctx, tenant, s.SID)
		}
		if done.Result.TokensAfter >= done.Result.TokensBefore || done.Epoch != s.Epoch+1 {
			return "", fmt.Errorf("compaction from %d to %d tokens, epoch %d after %d",
				done.Result.TokensBefore, done.Result.TokensAfter, done.Epoch, s.Epoch)
		}
	}
	return "", fmt.Errorf("still owes after %d compactions", rounds)
}

func (l *lab) force(ctx context.Context, j *journal, budget int, o *outcome) error {
	res, err := l.node.Compact(ctx, contextengine.CompactParams{Session: on(j.key), TokenBudget: &budget, Force: true})
	if err != nil {
		return err
	}
	if o.forced, err = l.look(ctx, j, budget); err != nil {
		return err
	}
	if got := o.forced.res.EstimatedTokens; res.Compacted && (got > o.after.res.EstimatedTokens && o.after.res.LeftOut == 0 || got > budget && !o.forced.over) {
		return fmt.Errorf("from %d to %d tokens", o.after.res.EstimatedTokens, got)
	}
	again, err := l.node.Compact(ctx, contextengine.CompactParams{Session: on(j.key), TokenBudget: &budget, Force: true})
	if err != nil || !again.OK || again.Compacted {
		return fmt.Errorf("a second one at once: %+v %w", again, err)
	}
	return nil
}

// look assembles on both nodes, with and without an explanation, and checks
// that the four agree.
func (l *lab) look(ctx context.Context, j *journal, budget int) (*seen, error) {
	if err := l.follow(ctx, j); err != nil {
		return nil, err
	}
	res, err := l.assemble(ctx, l.node, j.key, budget, nil, true)
	if err != nil {
		return nil, err
	}
	w, err := l.check(j, budget, res)
	if err != nil {
		return w, fmt.Errorf("window for %d: %w", budget, err)
	}
	for _, e := range []contextengine.Engine{l.other, l.node} {
		plain, err := l.assemble(ctx, e, j.key, budget, nil, false)
		if err != nil {
			return w, err
		}
		if err := equal(&res, &plain); err != nil {
			return w, fmt.Errorf("window for %d, assembled elsewhere: %w", budget, err)
		}
	}
	return w, nil
}

// ladder looks at the same log with each budget: a larger one never shows
// fewer messages.
func (l *lab) ladder(ctx context.Context, j *journal) ([]*seen, error) {
	var out []*seen
	for i, b := range budgets {
		w, err := l.look(ctx, j, b)
		if err != nil {
			return nil, err
		}
		if i > 0 && w.messages() < out[i-1].messages() {
			return nil, fmt.Errorf("%d messages in a window for %d, %d in one for %d",
				out[i-1].messages(), budgets[i-1], w.messages(), b)
		}
		out = append(out, w)
	}
	return out, nil
}

// sameAsOf assembles windows again as they were seen.
func (l *lab) sameAsOf(ctx context.Context, j *journal, were []*seen) error {
	for _, w := range were {
		then, err := l.assemble(ctx, l.other, j.key, w.budget, &w.res.Head, false)
		if err != nil {
			return err
		}
		if err := equal(&w.res, &then); err != nil {
			return fmt.Errorf("window for %d as of %d: %w", w.budget, w.res.Head, err)
		}
	}
	return nil
}

// equal compares all of two answers but their explanations.
func equal(a, b *contextengine.AssembleResult) error {
	if *a.ContextProjection != *b.ContextProjection {
		return fmt.Errorf("%+v and %+v", *a.ContextProjection, *b.ContextProjection)
	}
	if a.EstimatedTokens != b.EstimatedTokens || a.LeftOut != b.LeftOut || a.Head != b.Head || a.Epoch != b.Epoch ||
		(a.OverBudget == nil) != (b.OverBudget == nil) || a.SystemPromptAddition != b.SystemPromptAddition {
		return fmt.Errorf("%d tokens and %d, %d left out and %d, head %d and %d",
			a.EstimatedTokens, b.EstimatedTokens, a.LeftOut, b.LeftOut, a.Head, b.Head)
	}
	if len(a.Messages) != len(b.Messages) || !prefix(a, b) {
		return fmt.Errorf("%d messages and %d, not the same", len(a.Messages), len(b.Messages))
	}
	return nil
}

// prefix reports whether the messages of a window begin another.
func prefix(a, b *contextengine.AssembleResult) bool {
	if len(a.Messages) > len(b.Messages) {
		return false
	}
	for i := range a.Messages {
		if !bytes.Equal(a.Messages[i], b.Messages[i]) {
			return false
		}
	}
	return true
}
