package transcripts_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/engined/engined/contextengine"
)

// compactionsInARow is how often the longest session is compacted.
const compactionsInARow = 5

// TestRepeatedCompactions compacts the longest transcript again and again as it
// grows. After each compaction every window is checked, windows of earlier
// epochs are built again, and markers from every part of the history are
// reached by expanding what the window shows.
func TestRepeatedCompactions(t *testing.T) {
	t.Parallel()
	repeated(t, bundled(t))
}

func TestLargeRepeatedCompactions(t *testing.T) {
	t.Parallel()
	repeated(t, large(t))
}

func repeated(t *testing.T, files []*file) {
	t.Helper()
	l := newLab(t)
	c := longest(files)
	for _, budget := range []int{8000, 32_000} {
		if err := l.repeat(t.Context(), t, c, budget); err != nil {
			t.Errorf("%s at %d: %v", c.key, budget, err)
		}
	}
}

func longest(files []*file) *conversation {
	var best *conversation
	size := 0
	for _, f := range files {
		for _, c := range f.sessions {
			n := 0
			for _, m := range c.messages {
				n += len(m)
			}
			if n > size {
				best, size = c, n
			}
		}
	}
	return best
}

func (l *lab) repeat(ctx context.Context, t *testing.T, c *conversation, budget int) error {
	t.Helper()
	key := fmt.Sprint("repeated/", c.key, "@", budget)
	j := newJournal(key, c)
	var were []*seen
	for part := range compactionsInARow {
		to := len(c.messages) * (part + 1) / compactionsInARow
		from := len(c.messages) * part / compactionsInARow
		piece := &conversation{messages: c.messages[from:to], keys: c.keys[from:to]}
		if n, _, err := l.ingest(ctx, key, piece); err != nil || n != len(piece.messages) {
			return fmt.Errorf("part %d: %d of %d messages stored, %w", part, n, len(piece.messages), err)
		}
		before, err := l.look(ctx, j, budget)
		if err != nil {
			return fmt.Errorf("part %d, before: %w", part, err)
		}
		epochs := j.epochs
		res, err := l.other.Compact(ctx, contextengine.CompactParams{Session: on(key), TokenBudget: &budget, Force: true})
		if err != nil {
			return err
		}
		if _, err := l.ladder(ctx, j); err != nil {
			return fmt.Errorf("part %d, after: %w", part, err)
		}
		after, err := l.look(ctx, j, budget)
		if err != nil {
			return err
		}
		if !res.Compacted || j.epochs != epochs+1 {
			return fmt.Errorf("part %d: %+v, %d epochs after %d", part, res, j.epochs, epochs)
		}
		reached, err := j.markers(after, to)
		if err != nil {
			return fmt.Errorf("part %d: %w", part, err)
		}
		t.Logf("budget %d, part %d: %d messages, window %d → %d tokens, %d live summaries of %d, %d markers reached",
			budget, part+1, to, before.res.EstimatedTokens, after.res.EstimatedTokens, len(j.live), len(j.summaries), reached)
		were = append(were, before, after)
		if err := l.sameAsOf(ctx, j, were); err != nil {
			return fmt.Errorf("part %d: %w", part, err)
		}
	}
	return nil
}

// markers picks a message out of every fortieth part of the history and looks
// whether it can be reached: it is shown, or left out with its reason (and
// its event can be read), or under a summary that the window shows.
func (j *journal) markers(w *seen, upto int) (reached int, err error) {
	under := map[int64]bool{}
	for _, e := range w.res.Explanation {
		if e.Kind != "summary" {
			under[e.Seq] = true
			continue
		}
		if !e.Shown {
			continue
		}
		leaves, err := j.leaves(e.Seq)
		if err != nil {
			return 0, err
		}
		for _, seq := range leaves {
			under[seq] = true
		}
	}
	const parts = 40
	for i := range parts {
		at := (upto - 1) * i / (parts - 1)
		if !under[j.seqs[at]] {
			return reached, fmt.Errorf("message %d of %d (event %d) cannot be reached; live are %v", at, upto, j.seqs[at], slices.Clone(j.live))
		}
		reached++
	}
	return reached, nil
}
