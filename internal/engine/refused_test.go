package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
)

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, raw := range []string{`{"content":"x"}`, `{"role":5}`, `{"role":"user","content":5}`, `{"role":"toolResult","toolCallId":"a","content":{}}`} {
		_, err := b.IngestBatch(t.Context(), contextengine.IngestBatchParams{
			Session: on("k"), Messages: []json.RawMessage{json.RawMessage(user("hi")), json.RawMessage(raw)},
		})
		var bad *contextengine.InvalidError
		if !errors.As(err, &bad) || bad.Field != "messages[1]" {
			t.Errorf("%s: %v", raw, err)
		}
	}
	// A role of the host's own is kept, and no model sees it.
	b.ingest("k", user("hello"), `{"role":"martian","content":"beep"}`)
	if w := b.window("k", 1000); w.Head != 2 || strings.Contains(text(w), "beep") {
		t.Errorf("head %d, window:\n%s", w.Head, text(w))
	}
}

func TestWordsBesideAResultOfNoCallAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("go"),
		`{"role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"OTHER","content":"x"},{"type":"text","text":"KEEPME"}]}`)
	w := b.window("k", 1000)
	if len(w.Messages) != 3 || string(w.Messages[2]) != `{"role":"user","content":[{"type":"text","text":"KEEPME"}]}` || w.LeftOut != 0 {
		t.Errorf("%d left out:\n%s", w.LeftOut, text(w))
	}
}
