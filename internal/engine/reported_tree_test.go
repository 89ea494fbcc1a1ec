package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
)

// chain is n turns as entries, each the child of the one before; the last one's id
// comes back.
func chain(parent, name string, n int) (entries []string, tip string) {
	for i, raw := range talk(0, n) {
		id := fmt.Sprint(name, i)
		entries = append(entries, entry(id, parent, strings.ReplaceAll(raw, "marker", name)))
		parent = id
	}
	return entries, parent
}

func TestAnAbandonedBranchIsInNoSummary(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *engine.Config) { c.Summarizer = repeating{} })
	l := b.lane("k", "g", "s")
	kept, at := chain("", "kept", 20)
	l.sync(kept...)
	dead, _ := chain(at, "dead", 5)
	l.sync(dead...)
	l.sync(fmt.Sprintf(`{"type":"leaf","id":"l","parentId":"dead19","targetId":%q}`, at))
	live, _ := chain("l", "live", 20)
	l.sync(live...)
	if res := b.compact("k", 4000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	got := text(b.window("k", 1_000_000))
	if strings.Contains(got, "dead0") || !strings.Contains(got, "kept000") || !strings.Contains(got, "live000") {
		t.Errorf("the window behind the compaction:\n%s", got)
	}
	if log := strings.Join(b.stored("k"), "\n"); !strings.Contains(log, "dead004") {
		t.Error("the abandoned branch is gone from the log")
	}
}

func TestNewestTurnsAreReachedBehindParentsThatWereNeverWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	var want []string
	for i := range 10 {
		q, a := fmt.Sprint("q", i), fmt.Sprint("a", i)
		l.sync(entry(q, fmt.Sprint("gone", i), says("user", q)), entry(a, q, says("assistant", a)))
		want = append(want, q, a)
	}
	b.want("k", strings.Join(want, " "))
}

func TestABoundaryToWhatIsGoneIsNoEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s2")
	l.sync(`{"type":"session","version":4,"id":"s2","parentSession":"/gone/s1.jsonl"}`,
		`{"type":"compaction","id":"k","parentId":"gone","summary":"what was","firstKeptEntryId":"gone too"}`,
		entry("c", "k", says("user", "c")), entry("d", "c", says("assistant", "d")))
	b.want("k", "c d")
	l.commit("t", "e", "f", says("user", "e"), says("assistant", "f"))
	b.want("k", "c d e f")
}

func TestARecordAndAMessageOfOneIDAreBothKept(t *testing.T) {
	t.Parallel()
	record := `{"type":"custom","customType":"file-history-snapshot","id":"a","parentId":null}`
	for name, order := range map[string][]string{
		"the record first":         {record, entry("a", "", says("user", "one"))},
		"the message follows it":   {record, entry("a", "a", says("user", "one"))},
		"the message first":        {entry("a", "", says("user", "one")), record},
		"the record is its parent": {`{"type":"custom","id":"a","parentId":"zero"}`, entry("a", "a", says("user", "one"))},
	} {
		for _, paged := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", in pages of their own: ", paged), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				l := b.lane("k", "g", "s")
				sync := func(entries ...string) {
					if !paged {
						l.sync(entries...)
						return
					}
					for _, e := range entries {
						l.sync(e)
					}
				}
				before := ""
				if strings.Contains(order[0], "zero") {
					l.sync(entry("zero", "", says("user", "zero")))
					before = "zero "
				}
				sync(order...)
				b.want("k", before+"one")
				sync(entry("b", "a", says("assistant", "two")), entry("c", "b", says("user", "three")))
				b.want("k", before+"one two three")
				if res := l.page(0, len(l.log)); res.Stored != 0 {
					t.Errorf("again: %+v", res)
				}
				b.want("k", before+"one two three")
				// Back to the id that both have, and on from there.
				sync(`{"type":"leaf","id":"l","parentId":"c","targetId":"a"}`)
				b.want("k", before+"one")
				sync(entry("d", "a", says("assistant", "other")))
				b.want("k", before+"one other")
			})
		}
	}
}

func TestAChainOfThousandsOfParents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	var entries, want []string
	for i := range 5000 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("e", i-1)
		}
		m := says([]string{"user", "assistant"}[i%2], fmt.Sprint(i))
		entries, want = append(entries, entry(fmt.Sprint("e", i), parent, m)), append(want, m)
	}
	for i := 0; i < len(entries); i += 500 {
		l.sync(entries[i : i+500]...)
	}
	if diff := cmp.Diff(want, messagesOf(b.window("k", 1_000_000))); diff != "" {
		t.Errorf("%.2000s", diff)
	}
}

func TestASignedMessageIsShownByteForByteOrNotAtAll(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("I weigh it. ", 400)
	turn := func(i int) []string {
		return []string{
			user(fmt.Sprint("task ", i)),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"%s%d","thinkingSignature":"c2lnbmVk%d=="},{"type":"text","text":"first"},{"type":"thinking","thinking":"then %[2]d","thinkingSignature":"dGhlbg%[2]d"},{"type":"toolCall","id":"c%[2]d","name":"read","arguments":{ "path" : "x" }}],"stopReason":"toolUse"}`, long, i, i),
			result(fmt.Sprint("c", i), strings.Repeat("found. ", 900)),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"redacted_thinking","data":"%s"},{"type":"text","text":"done %d"}],"stopReason":"stop"}`, strings.Repeat("QUJD", 300), i),
		}
	}
	b := setup(t)
	sent := map[string]bool{}
	for i := range 8 {
		m := turn(i)
		sent[m[1]], sent[m[3]] = true, true
		b.ingest("k", m...)
	}
	shown := func(budget int) (n int) {
		t.Helper()
		w := b.window("k", budget)
		pairs(t, w)
		for _, m := range messagesOf(w) {
			if !strings.HasPrefix(m, `{"role":"assistant"`) {
				continue
			}
			n++
			if !sent[m] {
				t.Errorf("budget %d shows what was never said:\n%.300s", budget, m)
			}
		}
		return n
	}
	few, all := shown(3000), shown(1_000_000)
	if few == 0 || few >= 16 || all != 16 {
		t.Errorf("%d and %d messages of the assistant are shown", few, all)
	}
	for budget := 500; budget < 25_000; budget += 487 {
		shown(budget)
	}
	if res := b.compact("k", 8000); !res.Compacted {
		t.Fatalf("%+v", res)
	}
	if n := shown(8000); n == 0 || n == 16 {
		t.Errorf("%d messages of the assistant behind the compaction", n)
	}
}

func TestAHeartbeatThatWorkedStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	worked := []string{user("poll"), call("a"), result("a", "1"), call("b"), result("b", "2"), call("c"), result("c", "3"), assistant("HEARTBEAT_OK")}
	idle := []string{user("poll"), assistant("HEARTBEAT_OK")}
	for i, turn := range [][]string{idle, worked, idle} {
		_, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
			Session: on("k"), AdvancementKey: fmt.Sprint(i), Messages: rawMessages(turn...), IsHeartbeat: true,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.ingest("k", user("what did you do?"))
	if diff := cmp.Diff(append(worked, user("what did you do?")), messagesOf(b.window("k", 10_000))); diff != "" {
		t.Error(diff)
	}
}

func TestDeepArgumentsGoAllTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, depth := range []int{125, 126, 500} {
		args := strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
		b.ingest("k", user("call"),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":"d%d","name":"deep","arguments":%s}],"stopReason":"toolUse"}`, depth, args),
			result(fmt.Sprint("d", depth), "ok"), assistant("done"))
	}
	log := b.stored("k")
	if diff := cmp.Diff(log, messagesOf(b.window("k", 100_000))); diff != "" || len(log) != 12 {
		t.Error(diff)
	}
	b.ingest("k", talk(0, 30)...)
	if res := b.compact("k", 6000); !res.Compacted {
		t.Errorf("%+v", res)
	}
	pairs(t, b.window("k", 6000))
}

// word is what tells the turns of a chain from one another.
var word = regexp.MustCompile(`(kept|dead|live)\d+`)

// repeating is a summarizer that names each turn it is asked to tell.
type repeating struct{ summarize.Extractive }

func (repeating) Summarize(_ context.Context, r summarize.Request) (summarize.Result, error) {
	var text strings.Builder
	for _, c := range r.Children {
		text.WriteString(c.Text + "\n")
	}
	for _, l := range r.Lines {
		if l.Role == summarize.User {
			text.WriteString(word.FindString(l.Text) + " ")
		}
	}
	return summarize.Result{Text: text.String()}, nil
}
