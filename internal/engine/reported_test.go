package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
)

// Faults that users of comparable systems reported; docs/scenarios.md has the
// table.

// aborted is a call that the user stopped, and the result that the host made up.
func aborted(id string) []string {
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":%q,"name":"bash","arguments":{}}],"stopReason":"aborted"}`, id),
		fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[{"type":"text","text":"synthetic error"}],"isError":true}`, id),
	}
}

func TestAnAbortedCallIsSummarizedWithItsMadeUpResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("run it"))
	b.ingest("k", aborted("c1")...)
	b.ingest("k", talk(0, 30)...)
	if res := b.compact("k", 6000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	for _, budget := range []int{1000, 6000, 100_000} {
		w := b.window("k", budget)
		pairs(t, w)
		if got := strings.Join(messagesOf(w), "\n"); strings.Contains(got, `"c1"`) {
			t.Errorf("budget %d shows the aborted call or its result:\n%s", budget, got)
		}
	}
}

// messagesOf are the messages of a window that are no summaries.
func messagesOf(w contextengine.AssembleResult) []string {
	var out []string
	for _, m := range w.Messages {
		if !strings.Contains(string(m), `"compactionSummary"`) {
			out = append(out, string(m))
		}
	}
	return out
}

func TestCallsBehindACompactionOfImagesPairWithTheirOwnResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	picture := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"look at this"},{"type":"image","mimeType":"image/png","data":%q}]}`, strings.Repeat("iVBORw0K", 20_000))
	for i := range 10 {
		b.ingest("k", picture)
		b.ingest("k", talk(i, 3)...)
	}
	if res := b.compact("k", 8000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	var after []string
	for i := range 10 {
		after = append(after, call(fmt.Sprint("new", i)), result(fmt.Sprint("new", i), fmt.Sprint("answer ", i)))
	}
	b.ingest("k", append([]string{user("now write")}, after...)...)
	w := b.window("k", 100_000)
	pairs(t, w)
	got := text(w)
	if !strings.HasSuffix(got, strings.Join(after, "\n")) {
		t.Error("the calls behind the compaction are not the end of the window")
	}
	if n := strings.Count(got, "iVBORw0K"); n > 20_000 {
		t.Errorf("%d bytes of images are sent again", 8*n)
	}
	// On demand they are there as they came.
	if got := b.stored("k")[0]; got != picture {
		t.Errorf("the first image has %d bytes, had %d", len(got), len(picture))
	}
}

func TestCallIDsThatShareAPartStayApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := []string{user("go"), call("call_x|fc_1", "call_x|fc_2"), result("call_x|fc_2", "second"), result("call_x|fc_1", "first"), assistant("done")}
	b.ingest("k", log...)
	w := b.window("k", 10_000)
	pairs(t, w)
	log[2], log[3] = log[3], log[2] // results stand in the order of their calls
	if diff := cmp.Diff(log, messagesOf(w)); diff != "" {
		t.Error(diff)
	}
}

func TestAResultOnABranchWithoutItsCallIsNotShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("one"), assistant("two"), user("three"), call("c"))
	if _, err := b.Rewind(t.Context(), on("k"), 2); err != nil {
		t.Fatal(err)
	}
	b.ingest("k", result("c", "late"), user("another way"))
	if diff := cmp.Diff([]string{user("one"), assistant("two"), user("another way")}, messagesOf(b.window("k", 10_000))); diff != "" {
		t.Error(diff)
	}
	if got := b.stored("k"); len(got) != 6 {
		t.Errorf("%d messages in the log, want 6", len(got))
	}
}

func TestAnAnswerBehindAResetWedgesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", user("may I?"), call("approval"))
	if _, err := b.Reset(t.Context(), on("k"), nil, "new"); err != nil {
		t.Fatal(err)
	}
	b.ingest("k", result("approval", "yes"), user("hello"), assistant("hi"))
	if diff := cmp.Diff([]string{user("hello"), assistant("hi")}, messagesOf(b.window("k", 10_000))); diff != "" {
		t.Error(diff)
	}
}

func TestTheUsersWordsStayThroughALongToolLoop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 10)...)
	ask := user("metadata {}\nplease find the marker-of-the-user")
	b.ingest("k", ask)
	for i := range 47 {
		id := fmt.Sprint("round", i)
		b.ingest("k", call(id), result(id, strings.Repeat(fmt.Sprintf("row %d of many\n", i), 60)))
		if i%16 == 15 {
			b.compact("k", 4000)
		}
		w := b.window("k", 4000)
		pairs(t, w)
		if !strings.Contains(text(w), ask) || !strings.Contains(text(w), fmt.Sprintf("row %d of many", i)) || w.EstimatedTokens > 4000 {
			t.Fatalf("round %d: %d tokens:\n%s", i, w.EstimatedTokens, text(w))
		}
	}
}

// TestBinaryOutputOfToolsIsKept: lone and reversed halves of surrogate pairs, a
// NUL, and the six characters that spell one, in arguments and in results.
func TestBinaryOutputOfToolsIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	log := []string{
		user("run it"),
		`{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"description":"현\ud99c 보유","nul":"\u0000","six":"\\u0000"}}],"stopReason":"toolUse"}`,
		`{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"\udc80 \ud800 alone, \udc00\ud800 reversed, \u0000 and \\u0000"}],"isError":false}`,
		assistant("done"),
	}
	b.ingest("k", log...)
	if diff := cmp.Diff(log, messagesOf(b.window("k", 10_000))); diff != "" {
		t.Error(diff)
	}
	b.ingest("k", talk(0, 30)...)
	if res := b.compact("k", 6000); !res.Compacted {
		t.Errorf("%+v", res)
	}
	if diff := cmp.Diff(log, b.stored("k")[:4]); diff != "" {
		t.Error(diff)
	}
}

// TestTheOrderIsTheLogsWhateverClocksSay: equal, decreasing and future times.
func TestTheOrderIsTheLogsWhateverClocksSay(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(i int) int64{
		"equal":   func(int) int64 { return 1_790_000_000_000 },
		"back":    func(i int) int64 { return 1_790_000_000_000 - int64(40*i) },
		"future":  func(i int) int64 { return 4_102_444_800_000 - int64(i%80)*1000 },
		"unknown": func(i int) int64 { return int64(i % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var log []string
			for i, raw := range talk(0, 60) {
				log = append(log, fmt.Sprintf(`{"timestamp":%d,%s`, at(i), strings.TrimPrefix(raw, "{")))
			}
			b.ingest("k", log...)
			if diff := cmp.Diff(log, messagesOf(b.window("k", 1_000_000))); diff != "" {
				t.Error(diff)
			}
			if res := b.compact("k", 6000); !res.Compacted {
				t.Fatalf("%+v", res)
			}
			w := b.window("k", 6000)
			kept := messagesOf(w)
			if diff := cmp.Diff(log[len(log)-len(kept):], kept); diff != "" || len(kept) == 0 || w.LeftOut != 0 {
				t.Errorf("%d left out, behind the compaction (-want +got):\n%s", w.LeftOut, diff)
			}
		})
	}
}

func TestManyHugeMessagesFit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 10 {
		big := strings.Repeat(fmt.Sprintf("line %d of a large paste. ", i), 2500) // 60 KB
		b.ingest("k", user("q "+big), assistant("a "+big))
	}
	for range 2 { // before a compaction and after
		w := b.window("k", 40_000)
		if w.EstimatedTokens > 40_000 || w.OverBudget != nil || !strings.Contains(text(w), "q line 9 of") {
			t.Errorf("%d tokens, over %v", w.EstimatedTokens, w.OverBudget)
		}
		b.compact("k", 40_000)
	}
}

// TestSessionsCompactedAtOnceTellOnlyTheirOwn, nor does one session's window
// show what was said to another.
func TestSessionsCompactedAtOnceTellOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Summarizer = quoting{} })
	keys := []string{"alpha", "beta", "gamma"}
	for i := range 30 {
		for _, key := range keys {
			b.ingest(key, user(fmt.Sprintf("%s speaks %d. %s", key, i, strings.Repeat("It matters a lot. ", 20))), assistant("noted by "+key))
		}
	}
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			budget := 2500
			res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: on(key), TokenBudget: &budget, Force: true})
			if err != nil || !res.Compacted {
				t.Errorf("%s: %+v %v", key, res, err)
			}
		})
	}
	all.Wait()
	for _, key := range keys {
		summaries := 0
		for _, e := range b.events(key) {
			if e.Type == events.SummaryCreated {
				summaries++
				if !strings.Contains(string(e.Body), key+" speaks") {
					t.Errorf("a summary of %s: %s", key, e.Body)
				}
			}
		}
		seen := b.log(key) + text(b.window(key, 100_000))
		for _, other := range keys {
			if other != key && strings.Contains(seen, other) {
				t.Errorf("%s holds what %s said", key, other)
			}
		}
		if summaries == 0 {
			t.Errorf("%s has no summary", key)
		}
	}
}

// TestAWindowThatIsSentBackIsNotStoredAgain: summaries of our own are no
// messages of the conversation.
func TestAWindowThatIsSentBackIsNotStoredAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("k", talk(0, 30)...)
	for turn := range 3 {
		b.compact("k", 6000)
		w := b.window("k", 6000)
		p := contextengine.AfterTurnParams{Session: on("k"), Messages: w.Messages, PrePromptMessageCount: len(w.Messages)}
		p.Messages = append(p.Messages, json.RawMessage(user(fmt.Sprint("turn ", turn))))
		for want := 1; want >= 0; want-- {
			if res, err := b.AfterTurn(t.Context(), p); err != nil || res.IngestedCount != want {
				t.Fatalf("turn %d: %+v %v, want %d stored", turn, res, err, want)
			}
		}
	}
	if got := b.stored("k"); len(got) != 123 || strings.Contains(strings.Join(got, ""), "compactionSummary") {
		t.Errorf("%d messages in the log, want 123", len(got))
	}
}
