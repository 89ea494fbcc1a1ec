package engine_test

import (
	"strings"
	"testing"

	"github.com/engined/engined/internal/message"
)

// TestARewindKeepsWhatAResetHid: a message that was written behind a reset
// comes back, from another branch, with the window that it had.
func TestARewindKeepsWhatAResetHid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, m := range []string{"m1", "m2", "m3"} {
		b.ingest("k", says("user", m))
	}
	keep := int64(2)
	if _, err := b.Reset(t.Context(), on("k"), &keep, ""); err != nil {
		t.Fatal(err)
	}
	b.ingest("k", says("user", "m5"))
	b.want("k", "m2 m3 m5")
	if _, err := b.Rewind(t.Context(), on("k"), 1); err != nil {
		t.Fatal(err)
	}
	b.want("k", "m1")
	b.ingest("k", says("user", "m7"))
	b.want("k", "m1 m7")
	if _, err := b.Rewind(t.Context(), on("k"), 5); err != nil {
		t.Fatal(err)
	}
	b.want("k", "m2 m3 m5")
}

// TestAResetThatKeptTheInsideOfATurn: providers of Anthropic's dialect refuse a
// window that begins with a model's call, so a notice goes first; in a fork too,
// where it is none of its ancestor's events.
func TestAResetThatKeptTheInsideOfATurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := turnOf(message.Anthropic, 1, "Look at the harbour.")
	b.ingest("k", turn[:3]...)
	keep := int64(2)
	if _, err := b.Reset(t.Context(), on("k"), &keep, ""); err != nil {
		t.Fatal(err)
	}
	b.fork("k", "f")
	for _, key := range []string{"k", "f"} {
		w := b.windowExplained(key, 4000)
		if len(w.Messages) != 3 || !strings.HasPrefix(string(w.Messages[0]), `{"role":"user","content":"[engined:`) || string(w.Messages[1]) != turn[1] {
			t.Fatalf("%s shows %s", key, text(w))
		}
		pairs(t, w)
		sum := 0
		for _, e := range w.Explanation {
			sum += e.Tokens
		}
		if e := w.Explanation[0]; e.Kind != "notice" || e.Seq != 0 || e.SessionKey != "" || sum != w.EstimatedTokens || w.LeftOut != 0 {
			t.Errorf("%s: %d tokens, %d left out, explained by %+v", key, w.EstimatedTokens, w.LeftOut, w.Explanation)
		}
		over := b.window(key, 10).OverBudget
		if over == nil || over.Items[0].Seq != 0 || over.Items[0].SessionKey != "" || len(over.Items) != 3 {
			t.Errorf("%s, a budget for nothing: %+v", key, over)
		}
		b.ingest(key, turnOf(message.Anthropic, 2, "")[1])
		if next := b.window(key, 4000); len(next.Messages) != 4 || next.ContextProjection.Fingerprint != w.ContextProjection.Fingerprint {
			t.Errorf("%s, the turn goes on: %s", key, text(next))
		}
	}
}
