package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// TestErasedAncestorIsForgotten follows a chain a → b → c, where b and c made
// summaries of what they inherited from a.
func TestErasedAncestorIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Summarizer = quoting{} })
	b.ingest("a", talk(0, 8)...)
	b.fork("a", "b")
	b.ingest("b", talk(10, 8)...)
	b.fork("b", "c")
	if !b.compact("b", 3000).Compacted {
		t.Fatal("b was not compacted")
	}
	b.ingest("c", talk(20, 8)...)
	if !b.compact("c", 3000).Compacted {
		t.Fatal("c was not compacted")
	}
	b.ingest("c", user("the newest"))
	b.prepare("a", "isolated", "isolated")
	b.fork("isolated", "of the isolated")
	a := b.sid("a")
	heirs, err := b.store.Inheritors(t.Context(), "t", a)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, h := range heirs {
		keys = append(keys, h.Key)
	}
	if diff := cmp.Diff([]string{"b", "c"}, keys); diff != "" {
		t.Fatal(diff)
	}
	before := map[string]store.Session{}
	for _, key := range []string{"b", "c"} {
		if !strings.Contains(b.log(key), "marker00") {
			t.Fatalf("%s made no summary of what it inherited", key)
		}
		s, err := b.store.Session(t.Context(), "t", key)
		if err != nil {
			t.Fatal(err)
		}
		before[key] = s
	}
	for _, h := range heirs {
		for again := range 2 {
			out, err := b.store.DropAncestor(t.Context(), "t", h.Key, a)
			if err != nil || out.Epoch != before[h.Key].Epoch+1 || out.Head != before[h.Key].Head+1 {
				t.Errorf("%s, time %d: %+v %v", h.Key, again, out, err)
			}
		}
	}
	for _, key := range []string{"b", "c"} {
		if got := b.log(key); strings.Contains(got, "marker00") {
			t.Errorf("the log of %s still holds what it inherited", key)
		}
		for at := int64(1); at <= before[key].Head+1; at++ {
			res := b.windowAt(key, 100_000, &at)
			if got := text(res); strings.Contains(got, "marker00") {
				t.Fatalf("%s as of %d still shows what it inherited", key, at)
			}
			pairs(t, res)
		}
		got := b.window(key, 1_000_000)
		s, err := b.store.Session(t.Context(), "t", key)
		if err != nil || s.LiveTokens() != int64(got.EstimatedTokens) {
			t.Errorf("%s counts %d tokens, its window %d, %v", key, s.LiveTokens(), got.EstimatedTokens, err)
		}
	}
	// What nobody inherited is there as it was; b's own messages are not a's.
	if got := text(b.window("c", 1_000_000)); !strings.Contains(got, talk(10, 1)[0]) || !strings.HasSuffix(got, user("the newest")) {
		t.Errorf("%.300s", got)
	}
	// The child goes on: appends, compacts, and has nothing of a's to undo to.
	b.ingest("c", talk(30, 4)...)
	if !b.compact("c", 2500).Compacted {
		t.Error("c can't be compacted any more")
	}
	if _, err := b.Rewind(t.Context(), on("c"), 1); err != nil {
		t.Fatal(err)
	}
	if got := text(b.window("c", 1_000_000)); strings.Contains(got, "marker00") || !strings.Contains(got, "marker010") {
		t.Errorf("at the fork's point: %.300s", got)
	}
	b.fork("c", "d")
	if d, err := b.store.Inheritors(t.Context(), "t", a); err != nil || len(d) != 3 {
		t.Errorf("%+v %v", d, err)
	}
	if out, err := b.store.DropAncestor(t.Context(), "t", "d", a); err != nil || out.Epoch != 1 {
		t.Errorf("a fork made afterwards inherits nothing of a: %+v %v", out, err)
	}
}

// quoting is a summarizer whose texts tell what they were made of.
type quoting struct{ summarize.Extractive }

func (quoting) Summarize(_ context.Context, r summarize.Request) (summarize.Result, error) {
	text := "said first: "
	for _, c := range r.Children {
		return summarize.Result{Text: text + c.Text}, nil
	}
	return summarize.Result{Text: text + r.Lines[0].Text[:min(40, len(r.Lines[0].Text))]}, nil
}

// log is everything that a session's own log says.
func (b *bundle) log(key string) string {
	b.t.Helper()
	evs, err := b.store.Events(b.t.Context(), "t", b.sid(key), 0, 10_000)
	if err != nil {
		b.t.Fatal(err)
	}
	var all strings.Builder
	for i, e := range evs {
		if e.Seq != int64(i+1) {
			b.t.Errorf("seq %d at place %d", e.Seq, i+1)
		}
		if e.Type == events.SummaryCreated && !json.Valid(e.Body) {
			b.t.Errorf("summary %d: %s", e.Seq, e.Body)
		}
		all.Write(e.Body)
	}
	return all.String()
}
