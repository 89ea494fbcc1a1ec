package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// listener is a memory system: it may write before a compaction.
type listener struct {
	mu     sync.Mutex
	before func(ctx context.Context, e engine.CompactionEvent) error
	told   []engine.CompactionEvent
	ended  []engine.CompactionEvent
}

func (l *listener) Before(ctx context.Context, e engine.CompactionEvent) error {
	l.mu.Lock()
	l.told = append(l.told, e)
	l.mu.Unlock()
	return l.before(ctx, e)
}

func (l *listener) After(e engine.CompactionEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, e)
}

// TestNotesAreWrittenBeforeACompaction: what the hook ingests is in the window, and
// both hooks speak of the same compaction.
func TestNotesAreWrittenBeforeACompaction(t *testing.T) {
	t.Parallel()
	l := &listener{}
	b := setup(t, func(c *engine.Config) { c.Hooks = l })
	const note = `{"role":"user","content":"note: the limit is 7000"}`
	l.before = func(context.Context, engine.CompactionEvent) error { b.ingest("s", note); return nil }
	b.ingest("s", told(12)...)
	dry := force()
	dry.DryRun = true
	if _, err := b.Compact(t.Context(), dry); err != nil || len(l.told) != 0 {
		t.Fatalf("a dry run tells of %d compactions, %v", len(l.told), err)
	}
	res, err := b.Compact(t.Context(), force())
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	w := b.window("s", 8000)
	if last := string(w.Messages[len(w.Messages)-1]); last != note || w.LeftOut != 0 {
		t.Errorf("ends with %s, %d left out", last, w.LeftOut)
	}
	if len(l.told) != 1 || len(l.ended) != 1 {
		t.Fatalf("%d before, %d after", len(l.told), len(l.ended))
	}
	before, after := l.told[0], l.ended[0]
	if before.ID == "" || before.ID != after.ID || before.SessionKey != "s" || before.Epoch != 1 || !before.Forced || before.Head != 48 {
		t.Errorf("before %+v", before)
	}
	if !after.Compacted || after.Epoch != 2 || after.TokensAfter != res.Result.TokensAfter || after.Err != nil {
		t.Errorf("after %+v", after)
	}
	// Nothing to do is nothing to tell.
	if res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on("s")}); err != nil || res.Compacted || len(l.told) != 1 {
		t.Errorf("%+v, %v, told %d times", res, err, len(l.told))
	}
}

func TestAFailedHookStopsNoCompaction(t *testing.T) {
	t.Parallel()
	l := &listener{before: func(context.Context, engine.CompactionEvent) error { return errors.New("webhook: answered 500") }}
	b := setup(t, func(c *engine.Config) { c.Hooks = l })
	b.ingest("s", told(12)...)
	res, err := b.Compact(t.Context(), force())
	if err != nil || !res.Compacted || !strings.Contains(string(res.Result.Details), `"hookError":"webhook: answered 500"`) {
		t.Fatalf("%+v, %v", res, err)
	}
	// A compaction that fails is told of too.
	broken := engine.NewLossless(engine.Config{Log: b.store, Hooks: l, Summarizer: failing{}})
	defer func() { _ = broken.Dispose(context.WithoutCancel(t.Context())) }()
	b.ingest("s", told(12)...)
	if _, err := broken.Compact(t.Context(), force()); err == nil {
		t.Fatal("compacted without a summary")
	}
	if last := l.ended[len(l.ended)-1]; last.Compacted || last.Err == nil || last.Epoch != 2 || last.TokensAfter != last.TokensBefore {
		t.Errorf("after %+v", last)
	}
}
