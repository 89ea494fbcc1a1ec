package transcripts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
)

// TestRollingTranscripts takes the transcripts through the same cycle with the
// engine of one rolling summary.
func TestRollingTranscripts(t *testing.T) {
	t.Parallel()
	cycles(t, rollingLab(t), bundled(t), &results{})
}

func TestLargeRollingTranscripts(t *testing.T) {
	t.Parallel()
	cycles(t, rollingLab(t), large(t), &results{})
}

func rollingLab(t *testing.T) *lab {
	t.Helper()
	return labOf(t, func(st *store.Store) *engine.Lossless { return &engine.NewRolling(engine.Config{Log: st}).Lossless })
}

// TestRecallTranscripts asks, after a compaction, about what the transcripts say
// early on. The windows with the passages found are held to all that other
// windows are, and the passages to what was said.
func TestRecallTranscripts(t *testing.T) {
	t.Parallel()
	recalls(t, bundled(t), 3)
}

func TestLargeRecallTranscripts(t *testing.T) {
	t.Parallel()
	recalls(t, large(t), 20)
}

// recalls expects passages in at least so many windows.
func recalls(t *testing.T, files []*file, least int) {
	t.Helper()
	l := labOf(t, func(st *store.Store) *engine.Lossless {
		return &engine.NewRecall(engine.Config{Log: st, Passages: retrieval.NewSearcher(st, nil), PassageWait: time.Minute}).Lossless
	})
	indexer := retrieval.NewIndexer(l.store, nil)
	found := 0
	for _, f := range files {
		for _, c := range f.sessions[:min(len(f.sessions), 10)] {
			for _, budget := range []int{4000, 16_000} {
				n, err := l.recall(t.Context(), indexer, c, budget)
				if err != nil {
					t.Errorf("%s at %d: %v", c.key, budget, err)
				}
				found += n
			}
		}
	}
	if found < least {
		t.Errorf("%d windows with passages, want at least %d", found, least)
	}
}

func (l *lab) recall(ctx context.Context, indexer *retrieval.Indexer, c *conversation, budget int) (found int, err error) {
	key := fmt.Sprint("recall/", c.key, "@", budget)
	j := newJournal(key, c)
	if _, _, err := l.ingest(ctx, key, c); err != nil {
		return 0, err
	}
	if _, err := l.pay(ctx, key, budget); err != nil {
		return 0, err
	}
	if err := l.follow(ctx, j); err != nil {
		return 0, err
	}
	if err := l.index(ctx, indexer); err != nil {
		return 0, err
	}
	for _, i := range early(c) {
		question := strings.Join(c.read[i].texts, " ")
		res, err := l.node.Assemble(ctx, contextengine.AssembleParams{
			Session: on(key), TokenBudget: &budget, Explain: true, Prompt: question[:min(len(question), 300)],
		})
		if err != nil {
			return found, err
		}
		n, err := l.checkRecall(j, budget, res)
		if err != nil {
			return found, fmt.Errorf("asked for message %d: %w", i, err)
		}
		found += min(n, 1)
	}
	return found, nil
}

// early are a few messages of the first half whose words are asked for.
func early(c *conversation) []int {
	var out []int
	for i := range c.read[:len(c.read)/2] {
		if m := &c.read[i]; (m.role == "user" || m.role == "assistant") && len(m.texts) > 0 && len(m.texts[0]) > 60 {
			out = append(out, i)
		}
	}
	if len(out) > 3 {
		out = []int{out[0], out[len(out)/2], out[len(out)-1]}
	}
	return out
}

// index brings the index up to the log. Other tests' transactions hold it back
// for a moment.
func (l *lab) index(ctx context.Context, indexer *retrieval.Indexer) error {
	for {
		if _, err := indexer.Index(ctx, tenant, time.Minute); err != nil {
			return err
		}
		a, err := retrieval.NewSearcher(l.store, nil).Search(ctx, retrieval.Request{Tenant: tenant, Query: "anything", Limit: 1})
		if err != nil || a.Current {
			return err
		}
	}
}

// checkRecall checks the window without its passages, then the passages, then the
// whole as a provider sees it.
func (l *lab) checkRecall(j *journal, budget int, res contextengine.AssembleResult) (passages int, err error) {
	rest := res
	rest.Explanation = slices.DeleteFunc(slices.Clone(res.Explanation), func(e contextengine.Explanation) bool { return e.Kind == "passage" })
	passages = len(res.Explanation) - len(rest.Explanation)
	for _, e := range res.Explanation {
		if e.Kind == "passage" {
			rest.EstimatedTokens -= e.Tokens
		}
	}
	at := slices.IndexFunc(res.Messages, func(m json.RawMessage) bool {
		return bytes.Contains(m, []byte("<passages>")) || bytes.Contains(m, []byte(`\u003cpassages\u003e`))
	})
	if (at >= 0) != (passages > 0) {
		return passages, fmt.Errorf("%d passages are explained, message %d shows them", passages, at)
	}
	if at < 0 {
		_, err := l.check(j, budget, res)
		return 0, err
	}
	rest.Messages = slices.Delete(slices.Clone(res.Messages), at, at+1)
	w, err := l.check(j, budget, rest)
	if err != nil {
		return passages, err
	}
	m, err := read(res.Messages[at])
	if err != nil {
		return passages, err
	}
	if err := j.quoted(&m, res.Explanation, w); err != nil {
		return passages, err
	}
	shown := make([]said, 0, len(res.Messages))
	for _, raw := range res.Messages {
		s, err := read(raw)
		if err != nil {
			return passages, err
		}
		shown = append(shown, s)
	}
	err = strict(j.dialect, shown, func(i int) bool { return i != at && j.stillOpen(w.seqs[i-min(1, max(i-at, 0))], res.Head) })
	if err != nil {
		return passages, fmt.Errorf("with passages: %w", err)
	}
	n, err := l.count.message(&m)
	if err != nil {
		return passages, err
	}
	if total := w.tokens + n; total > res.EstimatedTokens || total > budget && !w.over {
		return passages, fmt.Errorf("%d tokens with passages, estimated %d, in a window for %d", total, res.EstimatedTokens, budget)
	}
	return passages, nil
}

// quoted: each passage is of a message that the window does not show, and in its
// words.
func (j *journal) quoted(m *said, explained []contextengine.Explanation, w *seen) error {
	text := strings.Join(m.texts, "\n")
	for _, e := range explained {
		if e.Kind != "passage" {
			continue
		}
		at, ok := j.index[e.Seq]
		if !ok || slices.Contains(w.seqs, e.Seq) {
			return fmt.Errorf("passage of event %d, which is shown or no message", e.Seq)
		}
		_, rest, ok := strings.Cut(text, fmt.Sprintf(`<passage event="%d"`, e.Seq))
		if !ok {
			return fmt.Errorf("the passage of event %d is not in the message", e.Seq)
		}
		_, rest, _ = strings.Cut(rest, ">\n")
		quote, _, _ := strings.Cut(rest, "\n</passage>")
		quote = strings.Trim(strings.TrimSpace(quote), "… ")
		whole := strings.Join(append(slices.Clone(j.read[at].texts), j.read[at].answer...), "\n")
		if squeeze(quote) == "" || !strings.Contains(squeeze(whole), squeeze(closesPassage.Replace(quote))) {
			return fmt.Errorf("event %d does not say %q", e.Seq, quote)
		}
	}
	return nil
}

// closesPassage undoes what keeps a text from ending its quotation.
var closesPassage = strings.NewReplacer(`<\/passage`, "</passage", `<\passage`, "<passage")

// squeeze leaves blanks out, which a quotation may fold.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }
