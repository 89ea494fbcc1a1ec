package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
)

func rewriting(c *engine.Config) {
	c.DefaultBudget = 8000
	c.Rewriting = engine.Rewriting{On: true, Over: 100, KeepAssistants: 2, GainShare: 0.01}
}

func (b *bundle) maintain(key, reason string) contextengine.MaintainResult {
	b.t.Helper()
	res, err := b.Maintain(b.t.Context(), contextengine.MaintainParams{Session: on(key), Reason: reason})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// marked lists the messages of a window that are shown in a shorter form.
func marked(w contextengine.AssembleResult) (out []int) {
	for i, m := range w.Messages {
		if strings.Contains(string(m), "characters shown; full text: event") {
			out = append(out, i)
		}
	}
	return out
}

func TestF084OldResultsAreRewrittenAndKept(t *testing.T) {
	t.Parallel()
	const budget = 8000
	b := setup(t, rewriting)
	lines := told(10)
	b.ingest("s", lines...)
	if _, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on("s"), TokenBudget: new(budget)}); err != nil {
		t.Fatal(err)
	}
	before := b.window("s", budget)
	head := before.Head
	for _, reason := range []string{contextengine.MaintainAfterBootstrap, contextengine.MaintainAfterCompaction} {
		if res := b.maintain("s", reason); res.Changed || res.Reason != "nothing to maintain" {
			t.Errorf("%s: %+v", reason, res)
		}
	}
	res := b.maintain("s", contextengine.MaintainAfterTurn)
	if !res.Changed || res.RewrittenEntries == 0 || res.BytesFreed < int64(1000*res.RewrittenEntries) {
		t.Fatalf("%+v", res)
	}
	after := b.window("s", budget)
	if after.Epoch != before.Epoch+1 || len(after.Messages) != len(before.Messages) || after.EstimatedTokens >= before.EstimatedTokens {
		t.Fatalf("epoch %d → %d, %d → %d messages, %d → %d tokens", before.Epoch, after.Epoch,
			len(before.Messages), len(after.Messages), before.EstimatedTokens, after.EstimatedTokens)
	}
	short := marked(after)
	if len(short) != res.RewrittenEntries || b.count("s", events.MessageSuperseded) != len(short) {
		t.Errorf("%v of %d", short, res.RewrittenEntries)
	}
	for i, m := range after.Messages {
		if whole := string(m) == lines[i]; whole == strings.Contains(string(m), "full text: event") {
			t.Errorf("message %d: %.300s", i, m)
		}
	}
	if last := short[len(short)-1]; last > len(lines)-8 {
		t.Errorf("message %d is among the newest", last)
	}
	// Before the rewriting the window has the original, and so has the log.
	if d := cmp.Diff(before.Messages, b.windowAt("s", budget, &head).Messages); d != "" {
		t.Errorf("as of %d:\n%s", head, d)
	}
	// Once is enough, and a node that knows nothing yet shows the same.
	if again := b.maintain("s", ""); again.Changed {
		t.Errorf("again: %+v", again)
	}
	other := engine.NewLossless(engine.Config{Log: b.store})
	defer func() { _ = other.Dispose(t.Context()) }()
	cold, err := other.Assemble(t.Context(), contextengine.AssembleParams{Session: on("s"), TokenBudget: new(budget), Explain: true})
	if err != nil || !cmp.Equal(cold.Messages, after.Messages) {
		t.Errorf("cold: %v\n%s", err, cmp.Diff(after.Messages, cold.Messages))
	}
	for _, i := range short {
		if x := cold.Explanation[i]; x.Reason != "old tool result, rewritten to a shorter form" {
			t.Errorf("%+v", x)
		}
	}
	b.checkTokens("s", after.EstimatedTokens)
}

// checkTokens compares what the session's row says of the untrimmed window.
func (b *bundle) checkTokens(key string, want int) {
	b.t.Helper()
	s, err := b.store.Session(b.t.Context(), "t", key)
	if err != nil {
		b.t.Fatal(err)
	}
	if got := s.LiveTokens(); got != int64(want) {
		b.t.Errorf("the session has %d tokens, its window %d", got, want)
	}
}

// Summaries are made from the originals; what is rewritten stays so when they are
// undone, and a rewriting is no compaction that could be.
func TestRewritingsAndCompactions(t *testing.T) {
	t.Parallel()
	const budget = 8000
	b := setup(t, rewriting)
	b.ingest("s", told(12)...)
	if res := b.maintain("s", ""); !res.Changed {
		t.Fatalf("%+v", res)
	}
	if _, err := b.UndoCompaction(t.Context(), on("s"), nil); err != contextengine.ErrNothingToUndo { //nolint:errorlint // as it is
		t.Errorf("undo: %v", err)
	}
	rewritten := b.window("s", budget)
	p := force()
	if res, err := b.Compact(t.Context(), p); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	compacted := b.window("s", budget)
	b.checkTokens("s", compacted.EstimatedTokens)
	b.ingest("s", told(12)...)
	if res := b.maintain("s", ""); !res.Changed {
		t.Fatalf("%+v", res)
	}
	if _, err := b.UndoCompaction(t.Context(), on("s"), nil); err != nil {
		t.Fatal(err)
	}
	undone := b.window("s", 20_000)
	// What was in the tail at the first rewriting may be rewritten since.
	first := marked(rewritten)
	upto := first[len(first)-1] + 1
	if d := cmp.Diff(rewritten.Messages[:upto], undone.Messages[:upto]); d != "" {
		t.Errorf("undone:\n%s", d)
	}
	b.checkTokens("s", undone.EstimatedTokens)
	if n := len(marked(undone)); n <= len(marked(rewritten)) {
		t.Errorf("%d rewritten messages after the undo, %d before the compaction", n, len(marked(rewritten)))
	}
	if _, err := b.Reset(t.Context(), on("s"), nil, "test"); err != nil {
		t.Fatal(err)
	}
	b.checkTokens("s", 0)
}

func TestUnreadResultsAndTheTailAreNotRewritten(t *testing.T) {
	t.Parallel()
	b := setup(t, rewriting)
	lines := told(2)
	b.ingest("s", lines[:3]...) // the result is not read yet
	if res := b.maintain("s", ""); res.Changed {
		t.Errorf("unread: %+v", res)
	}
	b.ingest("s", lines[3:]...)
	if res := b.maintain("s", ""); res.Changed {
		t.Errorf("in the tail: %+v", res)
	}
	off := setup(t)
	off.ingest("s", told(12)...)
	if res := off.maintain("s", ""); res.Changed || off.Info().TurnMaintenanceMode != "" {
		t.Errorf("off: %+v", res)
	}
}

// TestAForkShowsWhatItRewrote: the shorter forms are in its own log, behind all
// that it inherited.
func TestAForkShowsWhatItRewrote(t *testing.T) {
	t.Parallel()
	const budget = 8000
	b := setup(t, rewriting)
	b.ingest("p", told(3)...)
	b.fork("p", "s")
	b.ingest("s", told(10)...)
	if _, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on("s"), TokenBudget: new(budget)}); err != nil {
		t.Fatal(err)
	}
	before := b.window("s", budget)
	res := b.maintain("s", contextengine.MaintainAfterTurn)
	if !res.Changed {
		t.Fatalf("%+v", res)
	}
	after := b.window("s", budget)
	if len(marked(after)) != res.RewrittenEntries || after.EstimatedTokens >= before.EstimatedTokens {
		t.Errorf("%d of %d are shown shorter, %d → %d tokens", len(marked(after)), res.RewrittenEntries, before.EstimatedTokens, after.EstimatedTokens)
	}
	if res := b.compact("s", 4000); !res.Compacted {
		t.Errorf("%+v", res)
	}
	pairs(t, b.window("s", budget))
}
