package window

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/message"
)

func TestEveryWindowIsValidAndFitsAndLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 60)
		p := Build(in)
		if err := check(in, p); err != nil {
			t.Fatalf("%v\nin %+v\nplan %v left %v", err, in.Entries, seqs(p), reasons(p))
		}
		if diff := cmp.Diff(p, Build(in)); diff != "" {
			t.Fatalf("the same input gave another plan:\n%s", diff)
		}
	})
}

func TestLargerBudgetNeverShowsLess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 80)
		small := Build(in)
		in.Budget += rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, in.Budget)).Draw(t, "more")
		large := map[int64]Item{}
		for _, it := range Build(in).Items {
			large[it.Seq] = it
		}
		for _, it := range small.Items {
			if it.Kind == KindNotice {
				continue // a summary that has room with more budget begins the window instead
			}
			got, ok := large[it.Seq]
			if !ok {
				t.Fatalf("seq %d is shown with the smaller budget only", it.Seq)
			}
			if got.CutTo != 0 && (it.CutTo == 0 || it.CutTo > got.CutTo) {
				t.Fatalf("seq %d is cut to %d, with the smaller budget to %d", it.Seq, got.CutTo, it.CutTo)
			}
		}
	})
}

func TestHalfOfTheBudgetIsUsedWhileOlderMessagesExist(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 80)
		p := Build(in)
		if in.Dialect == message.Anthropic && len(in.Summaries) > 0 && len(p.Summaries) == 0 {
			t.Skip("such a window starts with a turn, wherever that is")
		}
		trimmed := false
		for _, lo := range p.LeftOut {
			trimmed = trimmed || lo.Reason == Trimmed
		}
		if !trimmed {
			return
		}
		largest := int64(0)
		l := arrange(in)
		for _, u := range l.units {
			largest = max(largest, u.charge>>chargeBits)
		}
		// One unit less is enough to fit; an anchor may go together with it.
		parts := int64(4)
		if in.Dialect == message.Anthropic {
			parts = 8
		}
		if largest > int64(in.Budget)/parts {
			return
		}
		if 2*p.Tokens < in.Budget {
			t.Fatalf("%d of %d tokens are used: %v of %+v", p.Tokens, in.Budget, seqs(p), in)
		}
	})
}

func TestReadingPagesGivesTheSameWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 80)
		all := Build(in)
		page := rapid.IntRange(1, 10).Draw(t, "page")
		part := in
		for n := page; ; n += page {
			from := max(len(in.Entries)-n, 0)
			part.Entries, part.Older = in.Entries[from:], from > 0
			if !NeedMore(part) {
				break
			}
		}
		got := Build(part)
		all.LeftOut, got.LeftOut = nil, nil
		if diff := cmp.Diff(all, got); diff != "" {
			t.Fatalf("with %d of %d entries:\n%s", len(part.Entries), len(in.Entries), diff)
		}
	})
}

func TestEqualFingerprintMeansPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 60)
		seen := map[string]Plan{}
		for n := range len(in.Entries) + 1 {
			part := in
			part.Entries = in.Entries[:n]
			p := Build(part)
			if before, ok := seen[p.EpochLabel+" "+p.Fingerprint]; ok && !prefix(before, p) {
				t.Fatalf("after %d entries %v does not continue %v (%s)", n, seqs(p), seqs(before), p.EpochLabel)
			}
			seen[p.EpochLabel+" "+p.Fingerprint] = p
		}
	})
}

func TestAppendThatFitsKeepsTheFingerprint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := messyInput(t, 60)
		if in.Dialect == message.Anthropic {
			// The user may be put first there, and a late result come right behind
			// it by chance; that counts as a change.
			in.Dialect = message.OpenAI
		}
		before := Plan{}
		for n := range len(in.Entries) + 1 {
			part := in
			part.Entries = in.Entries[:n]
			p := Build(part)
			if n > 0 && before.EpochLabel == p.EpochLabel && before.Over == nil && p.Over == nil &&
				len(p.Items) > len(before.Items) && prefix(before, p) && before.Fingerprint != p.Fingerprint {
				t.Fatalf("append %d: %v then %v (%s): another fingerprint", n, seqs(before), seqs(p), p.EpochLabel)
			}
			before = p
		}
	})
}

// prefix reports whether before's bytes begin after's.
func prefix(before, after Plan) bool {
	if len(before.Items) > len(after.Items) {
		return false
	}
	for i, it := range before.Items {
		if got := after.Items[i]; got.Seq != it.Seq || got.Kind != it.Kind || got.CutTo != it.CutTo || got.WithoutResults != it.WithoutResults {
			return false
		}
	}
	return true
}
