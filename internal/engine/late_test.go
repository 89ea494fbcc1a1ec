package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

func call(ids ...string) string {
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"bash","arguments":{}}`, id))
	}
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `],"stopReason":"toolUse"}`
}

func result(id, text string) string {
	return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[{"type":"text","text":%q}],"isError":false}`, id, text)
}

// A long-running tool answers at once with "in progress" and in the end with its
// result; a compaction in between covers the call.
func TestFinalResultOfACoveredCallReachesTheModel(t *testing.T) {
	t.Parallel()
	for name, interim := range map[string][]string{
		"after an interim result":    {result("long", "in progress")},
		"of a call given up as dead": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.ingest("k", user("start the long job"))
			b.ingest("k", call("long", "quick"))
			b.ingest("k", append([]string{result("quick", "QUICK")}, interim...)...)
			b.ingest("k", assistant("it runs"))
			b.ingest("k", talk(0, 40)...)
			if res := b.compact("k", 4000); !res.Compacted {
				t.Fatalf("%+v", res)
			}
			before := b.window("k", 8000)
			b.ingest("k", result("long", "FINAL RESULT"))
			for range 2 { // cold and cached
				w := b.window("k", 8000)
				got := text(w)
				if !strings.Contains(got, "FINAL RESULT") || !strings.Contains(got, `"id":"long"`) || !strings.Contains(got, "QUICK") {
					t.Errorf("the call and its results are not in the window:\n%s", got)
				}
				if strings.Contains(got, "in progress") || w.OverBudget != nil || w.LeftOut != before.LeftOut {
					t.Errorf("left out %d, over %v, window:\n%s", w.LeftOut, w.OverBudget, got)
				}
			}
			if res := b.compact("k", 4000); res.Compacted {
				if got := text(b.window("k", 8000)); strings.Contains(got, `"id":"long"`) && !strings.Contains(got, "FINAL RESULT") {
					t.Errorf("a call without its result:\n%s", got)
				}
			}
		})
	}
}

func TestForcedCompactionFollowsAnUnforcedOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 60)...)
	budget := 8000
	s, err := b.store.Session(t.Context(), "t", "k")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := b.Compactor.Owed(t.Context(), s, store.Debt{Budget: int64(budget)}); err != nil || !res.Compacted {
		t.Fatalf("%+v %v", res, err)
	}
	first := b.compact("k", budget)
	if !first.Compacted || first.Result.TokensAfter >= first.Result.TokensBefore {
		t.Fatalf("forced after unforced: %+v", first)
	}
	if second := b.compact("k", budget); second.Compacted || second.Reason != "already compacted" {
		t.Errorf("forced after forced: %+v", second)
	}
}

func TestBootstrapDoesNotBringBackWhatAResetHid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	history := contextengine.BootstrapParams{Session: on("k")}
	for _, raw := range talk(0, 2) {
		history.Messages = append(history.Messages, json.RawMessage(raw))
	}
	boot := func() contextengine.BootstrapResult {
		t.Helper()
		res, err := b.Bootstrap(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	boot()
	if _, err := b.Reset(t.Context(), on("k"), nil, "new"); err != nil {
		t.Fatal(err)
	}
	if res := boot(); res.ImportedMessages != 0 || len(b.window("k", 8000).Messages) != 0 {
		t.Errorf("after the reset: %+v", res)
	}
	history.Messages = append(history.Messages, json.RawMessage(user("a fresh start")))
	if res := boot(); res.ImportedMessages != 1 || len(b.window("k", 8000).Messages) != 1 {
		t.Errorf("with one more: %+v", res)
	}
	history.Messages = []json.RawMessage{json.RawMessage(user("a fresh start")), json.RawMessage(assistant("hello"))}
	if res := boot(); res.ImportedMessages != 1 || len(b.window("k", 8000).Messages) != 2 {
		t.Errorf("the new history alone: %+v", res)
	}
}

func TestCompactionThatLosesToAResetAsksAgain(t *testing.T) {
	t.Parallel()
	b, finish := held(t)
	if _, err := b.Reset(t.Context(), on("k"), nil, "new"); err != nil {
		t.Fatal(err)
	}
	if res := finish(); res.Compacted || res.Reason != "nothing to compact" || res.Epoch != 2 {
		t.Errorf("%+v", res)
	}
}

func TestSessionKeysThatPostgresCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, key := range []string{"", "\xff", "a\x00b", strings.Repeat("k", 513)} {
		_, err := b.Ingest(t.Context(), contextengine.IngestParams{Session: on(key), Message: json.RawMessage(user("x"))})
		var bad *contextengine.InvalidError
		if !errors.As(err, &bad) || bad.Field != "sessionKey" {
			t.Errorf("key %q: %v", key, err)
		}
	}
}
