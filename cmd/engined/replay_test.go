package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// chat is a conversation of so many turns; each reply tells its prompt.
func chat(turns int) string {
	var rows []string
	for i := range turns {
		rows = append(rows,
			fmt.Sprintf(`{"role":"user","content":"Question %d. %s"}`, i, strings.Repeat("It is about the same file again. ", 12)),
			fmt.Sprintf(`{"role":"assistant","content":"Answer %d. %s","usage":{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
				i, strings.Repeat("The file is as it should be. ", 12), 1000+100*i, 50*i))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func TestLookingAtWhatWindowsCost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Postgres twice")
	}
	file := filepath.Join(t.TempDir(), "chat.json")
	writeFile(t, file, chat(20))
	dev := serve(t, "dev", "--listen", "127.0.0.1:0", "--data", filepath.Join(reachable(t), "data"))
	engined(t, "import", file, "--session", "s", "--url", dev.url).ok(t)

	report := engined(t, "cache-report", "s", "--url", dev.url, "--budget", "1000").ok(t)
	for _, want := range []string{"20 model calls", "a trim step", "39,000 tokens, 9,500 of them from its cache (24.4 %)"} {
		if !strings.Contains(report.out, want) {
			t.Errorf("the cache report does not say %q:\n%s", want, report.out)
		}
	}
	var cost struct {
		Totals struct{ Calls int } `json:"totals"`
		Calls  []struct{ Seq int64 }
	}
	if err := json.Unmarshal([]byte(engined(t, "cache-report", "s", "--json", "--last", "3", "--url", dev.url).ok(t).out), &cost); err != nil {
		t.Fatal(err)
	}
	if cost.Totals.Calls != 3 || len(cost.Calls) != 3 || cost.Calls[2].Seq != 39 {
		t.Errorf("the newest three calls: %+v", cost)
	}

	if got := engined(t, "diff", "s", "--from", "40", "--url", dev.url).ok(t); !strings.Contains(got.out, "The windows are the same.") {
		t.Errorf("a window and itself:\n%s", got.out)
	}
	grown := engined(t, "diff", "s", "--from", "38", "--url", dev.url).ok(t)
	if !strings.Contains(grown.out, "… 38 messages in both") || !strings.Contains(grown.out, "+   39  user") || !strings.Contains(grown.out, "Both begin with the same 38 messages.") {
		t.Errorf("two messages later:\n%s", grown.out)
	}
	trimmed := engined(t, "diff", "s", "--to-budget", "1000", "--url", dev.url).ok(t)
	if !strings.Contains(trimmed.out, "-    1  user") || !strings.Contains(trimmed.out, "Both begin with the same 0 messages.") {
		t.Errorf("a smaller budget:\n%s", trimmed.out)
	}

	replayed := engined(t, "replay", "s", "--url", dev.url, "--budget", "1500", "--policy", "now", "--policy", "never:compaction=off",
		"--policy", "roll:engine=rolling", "--policy", "recall:engine=recall").ok(t)
	for _, want := range []string{"now", "never", "roll", "recall", "model calls", "compactions"} {
		if !strings.Contains(replayed.out, want) {
			t.Errorf("the replay does not say %q:\n%s", want, replayed.out)
		}
	}
	var sides struct {
		Policies []struct {
			Name   string
			Result struct{ MaxTokens, Compactions int }
		}
	}
	if err := json.Unmarshal([]byte(engined(t, "replay", "s", "--json", "--url", dev.url, "--budget", "3000", "--policy", "now", "--policy", "half:threshold=0.5",
		"--policy", "full:threshold=1").ok(t).out), &sides); err != nil {
		t.Fatal(err)
	}
	for i, most := range []int{2550, 1500, 3000} {
		// A turn of it takes about 160 tokens; the debt is paid behind the one that owes it.
		if got := sides.Policies[i].Result; got.Compactions == 0 || got.MaxTokens > most+200 || got.MaxTokens < most-400 {
			t.Errorf("policy %s: %+v, want windows of up to %d tokens", sides.Policies[i].Name, got, most)
		}
	}
	// A model's threshold is a policy's that names none, its window the budget of a
	// session without.
	if err := json.Unmarshal([]byte(engined(t, "replay", "s", "--json", "--url", dev.url, "--model", "small-1", "--model-windows", "small-*=3500:500:0.5",
		"--policy", "now", "--policy", "full:threshold=1").ok(t).out), &sides); err != nil {
		t.Fatal(err)
	}
	for i, most := range []int{1500, 3000} {
		if got := sides.Policies[i].Result; got.Compactions == 0 || got.MaxTokens > most+200 || got.MaxTokens < most-400 {
			t.Errorf("a model's thresholds, policy %s: %+v, want windows of up to %d tokens", sides.Policies[i].Name, got, most)
		}
	}
	// A fork of the first ten messages, and a fork of that one: seven turns.
	engined(t, "fork", "s", "f", "--at", "10", "--url", dev.url).ok(t)
	more := filepath.Join(t.TempDir(), "more.json")
	writeFile(t, more, chat(2))
	engined(t, "import", more, "--session", "f", "--url", dev.url).ok(t)
	engined(t, "fork", "f", "g", "--url", dev.url).ok(t)
	var forked struct {
		Policies []struct{ Result struct{ Calls, Shown int } }
	}
	if err := json.Unmarshal([]byte(engined(t, "replay", "g", "--json", "--url", dev.url, "--policy", "now").ok(t).out), &forked); err != nil {
		t.Fatal(err)
	}
	if got := forked.Policies[0].Result; got.Calls != 7 || got.Shown != 14 {
		t.Errorf("a fork of a fork is replayed as %+v, want 7 calls and 14 messages", got)
	}
	// A fork that goes back to its point shows what its parent showed there.
	engined(t, "rewind", "f", "--to", "3", "--url", dev.url).ok(t)
	engined(t, "fork", "f", "h", "--url", dev.url).ok(t)
	engined(t, "rewind", "h", "--to", "1", "--url", dev.url).ok(t)
	if err := json.Unmarshal([]byte(engined(t, "replay", "h", "--json", "--url", dev.url, "--policy", "now").ok(t).out), &forked); err != nil {
		t.Fatal(err)
	}
	if got := forked.Policies[0].Result; got.Shown != 12 {
		t.Errorf("a fork at a rewound leaf is replayed as %+v, want 12 messages", got)
	}
	if got := engined(t, "events", "s", "--url", dev.url, "--json").ok(t); strings.Contains(got.out, "summary.created") {
		t.Error("a replay wrote into the session")
	}

	engined(t, "compact", "s", "--force", "--budget", "1500", "--url", dev.url).ok(t)
	again := engined(t, "compact", "s", "--redo", "--instructions", "keep the file names", "--budget", "1500", "--url", dev.url).ok(t)
	if !strings.Contains(again.out, "epoch 4") {
		t.Errorf("a redo is an undo and a compaction:\n%s", again.out)
	}
	var tree struct {
		Summaries []struct {
			ID   int64
			Live bool
		}
	}
	if err := json.Unmarshal([]byte(engined(t, "summaries", "s", "--json", "--url", dev.url).ok(t).out), &tree); err != nil {
		t.Fatal(err)
	}
	live := tree.Summaries[len(tree.Summaries)-1]
	if !live.Live {
		t.Errorf("the newest summary is not live: %+v", tree)
	}
	under := engined(t, "expand", "s", strconv.FormatInt(live.ID, 10), "--messages", "--tokens", "200", "--url", dev.url).ok(t)
	if !strings.Contains(under.out, "user message") || !strings.Contains(under.out, "Question ") || !strings.Contains(under.out, "more with --after ") {
		t.Errorf("what the summary covers:\n%s", under.out)
	}
	for args, want := range map[string]string{
		"expand s x":                         "is no summary's id",
		"compact s --redo --dry-run":         "exclude each other",
		"replay s --policy x:budget=none":    "is not a whole number",
		"replay s --policy x:threshold=1.5":  "is not a part between 0 and 1",
		"replay s --policy x:moon=1":         `unknown key "moon"`,
		"replay s --policy x:threshold=0.01": "threshold is 0.01",
	} {
		if got := engined(t, append(strings.Fields(args), "--url", dev.url)...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("engined %s: %d %s", args, got.code, got.err)
		}
	}
}
