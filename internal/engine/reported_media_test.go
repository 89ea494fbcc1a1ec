package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// picture is an image's block, of so many bytes of base64.
func picture(bytes int) string {
	return `{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("iVBORw0K", bytes/8) + `"}`
}

func TestALargeImageOwesNoCompaction(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("iVBORw0K", 4<<20/8) // 3 MB decoded
	for name, turn := range map[string][]string{
		"openclaw": {
			user("screenshot"), call("c"),
			`{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"image","mimeType":"image/png","data":"` + data + `"}],"isError":false}`,
			assistant("seen"),
		},
		"anthropic": {
			user("screenshot"),
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"shot","input":{}}],"stop_reason":"tool_use"}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"seen"}],"stop_reason":"end_turn"}`,
		},
		"openai": {
			user("screenshot"),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"shot","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]}`,
			`{"role":"assistant","content":"seen"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			res, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
				Session: on("k"), AdvancementKey: "t", Messages: rawMessages(turn...), TokenBudget: new(8000),
			})
			if err != nil || res.Compaction != contextengine.CompactionNone {
				t.Errorf("compaction %v, %v", res.Compaction, err)
			}
			w := b.window("k", 8000)
			if diff := cmp.Diff(turn, messagesOf(w)); diff != "" || w.EstimatedTokens > 3000 || w.OverBudget != nil {
				t.Errorf("%d messages of %d tokens, over %v", len(w.Messages), w.EstimatedTokens, w.OverBudget)
			}
		})
	}
}

func TestEightLargeImagesInOneTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	turn := `{"role":"user","content":[` + strings.Repeat(picture(900_000)+",", 8) + `{"type":"text","text":"compare these"}]}`
	b.ingest("k", talk(0, 10)...)
	b.ingest("k", turn)
	for _, budget := range []int{10_000, 20_000, 40_000} {
		w := b.window("k", budget)
		if got := string(w.Messages[len(w.Messages)-1]); got != turn {
			t.Errorf("budget %d: the turn is not the end of the window", budget)
		}
		if w.EstimatedTokens < 8*2400 || (w.OverBudget != nil) != (budget < 8*2400) || w.OverBudget == nil && w.EstimatedTokens > budget {
			t.Errorf("budget %d: %d tokens, over %v", budget, w.EstimatedTokens, w.OverBudget)
		}
	}
}

func TestAFailedCompactionOfImagesSaysSoAndReplacesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Summarizer = broken{} })
	for i := range 50 {
		b.ingest("k", fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"picture %d"},%s]}`, i, picture(100_000)), assistant("seen"))
	}
	before := b.window("k", 200_000)
	res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on("k"), TokenBudget: new(8000), Force: true})
	if !errors.Is(err, errBroken) || res.OK || res.Compacted {
		t.Errorf("%+v, %v", res, err)
	}
	after := b.window("k", 200_000)
	if diff := cmp.Diff(before, after); diff != "" || len(after.Messages) != 100 {
		t.Errorf("%d messages in the window, epoch %d → %d", len(after.Messages), before.Epoch, after.Epoch)
	}
}

func TestResultsThatOverflowTogetherSayWhereTheyAreWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := []string{user("read the four"), call("a", "b", "c", "d")}
	for i, id := range []string{"a", "b", "c", "d"} {
		log = append(log, result(id, strings.Repeat(fmt.Sprintf("row %d of this file. ", i), 3000))) // 60 KB
	}
	b.ingest("k", log...)
	w := b.window("k", 50_000)
	if w.EstimatedTokens > 50_000 || w.OverBudget != nil || len(w.Messages) != len(log) {
		t.Fatalf("%d messages of %d tokens, over %v", len(w.Messages), w.EstimatedTokens, w.OverBudget)
	}
	pairs(t, w)
	for i, m := range w.Messages[2:] {
		if !strings.Contains(string(m), fmt.Sprintf("row %d of this file", i)) || !strings.Contains(string(m), fmt.Sprintf("full text: event %d", i+3)) {
			t.Errorf("result %d does not say where it is whole: %.200s … %s", i, m, m[max(0, len(m)-300):])
		}
	}
}

func TestAnAnswerToAClosedCallWedgesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("may I?"), call("c"), result("c", "no"), assistant("fine"), user("go on"), assistant("done"))
	// Again, and to what nobody asked; then after a restart the next turn.
	b.ingest("k", result("c", "no"), result("never", "yes"))
	other := node(t, b.url())
	other.ingest("k", user("and now?"), assistant("now this"))
	for _, n := range []*bundle{b, other} {
		w := n.window("k", 10_000)
		pairs(t, w)
		got := messagesOf(w)
		if len(got) < 2 || got[len(got)-2] != user("and now?") || got[len(got)-1] != assistant("now this") || strings.Contains(text(w), `"never"`) {
			t.Errorf("%s", text(w))
		}
	}
	if got := b.stored("k"); len(got) != 10 {
		t.Errorf("%d messages are stored, want 10", len(got))
	}
}
