package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
)

func (b *bundle) events(key string) []events.Event {
	b.t.Helper()
	s, err := b.store.Session(b.t.Context(), "t", key)
	if err != nil {
		b.t.Fatal(err)
	}
	evs, err := b.store.Events(b.t.Context(), "t", s.SID, 0, 10_000)
	if err != nil {
		b.t.Fatal(err)
	}
	return evs
}

// stored are the bodies of the messages in the log.
func (b *bundle) stored(key string) []string {
	b.t.Helper()
	out := []string{}
	for _, e := range b.events(key) {
		if e.Type == events.MessageAppended {
			out = append(out, string(e.Body))
		}
	}
	return out
}

func TestTranscriptKeepsBodiesAsTheyCame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	odd := `{ "role":"user",  "content":"<&> \ud800 \u0000 é","n":1.00e5 }`
	record := `{"type":"custom","id":"c","parentId":"a",  "data":"<&> \u0000"}`
	b.lane("k", "g", "s").sync(entry("a", "", odd), record)
	if diff := cmp.Diff([]string{odd}, b.stored("k")); diff != "" {
		t.Error(diff)
	}
	for _, e := range b.events("k") {
		if e.Type != events.IdentityLinked {
			continue
		}
		var body events.IdentityLinkedBody
		if err := json.Unmarshal(e.Body, &body); err != nil {
			t.Fatal(err)
		}
		if got := body.Entries[1].Record; got != record {
			t.Errorf("record %s", got)
		}
	}
}

func TestOneIDBeforeTwoBodiesKeepsBoth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	l.sync(entry("a", "", says("user", "one")), entry("a", "", says("user", "two")), entry("a", "", says("user", "one")))
	if diff := cmp.Diff([]string{says("user", "one"), says("user", "two")}, b.stored("k")); diff != "" {
		t.Error(diff)
	}
	if res := l.page(0, 3); res.Stored != 0 {
		t.Errorf("again: %+v", res)
	}
	// Another lane may have it too, with a body of its own.
	o := b.lane("k", "h", "x")
	if res := o.sync(entry("a", "", says("user", "two")), entry("a", "", says("user", "three"))); res.Stored != 1 || res.Duplicates != 1 {
		t.Errorf("%+v", res)
	}
	if res := o.page(0, 2); res.Stored != 0 || len(b.stored("k")) != 3 {
		t.Errorf("%+v, %v", res, b.stored("k"))
	}
}

func TestEntriesWithoutIDsFollowOneAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	plain := func(text string) string { return `{"type":"message","message":` + says("user", text) + `}` }
	log := []string{`{"type":"session","cwd":"/w"}`, plain("ok"), plain("ok"), plain("b"), says("user", "ok"), plain("ok")}
	l.sync(log[:3]...)
	l.page(0, 3) // the same page again
	l.sync(log[3:]...)
	b.want("k", "ok ok b ok ok")
	for _, cuts := range [][]int{{0, 6}, {0, 1, 6}, {0, 2, 3, 6}} {
		for i := 1; i < len(cuts); i++ {
			if res := l.page(cuts[i-1], cuts[i]); res.Stored != 0 {
				t.Errorf("cuts %v: %+v", cuts, res)
			}
		}
	}
	if res := l.sync(plain("ok")); res.Messages != 1 {
		t.Errorf("%+v", res)
	}
	b.want("k", "ok ok b ok ok ok")
}

func TestDanglingParentsAndCyclesFallBackToOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	l.sync(entry("a", "gone", says("user", "a")), entry("b", "b", says("assistant", "b")), entry("c", "d", says("user", "c")),
		entry("d", "c", says("assistant", "d")), `{"type":"leaf","id":"l","targetId":"nowhere"}`, entry("e", "l", says("user", "e")))
	b.want("k", "a b c d e")
	if s := b.window("k", 1000); s.Epoch != 1 {
		t.Errorf("epoch %d", s.Epoch)
	}
}

func TestBranchesWithinATranscript(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	l.sync(entry("a", "", says("user", "a")), entry("b", "a", says("assistant", "b")), entry("c", "b", says("user", "c")), entry("d", "c", says("assistant", "d")),
		entry("e", "b", says("user", "e")), entry("f", "e", says("assistant", "f")))
	b.want("k", "a b e f")
	l.sync(`{"type":"leaf","id":"l","parentId":"f","targetId":"d"}`)
	b.want("k", "a b c d")
	l.sync(entry("g", "d", says("user", "g")))
	b.want("k", "a b c d g")
	l.sync(`{"type":"leaf","id":"l2","parentId":"g","targetId":null}`)
	b.want("k", "")
	l.sync(entry("h", "", says("user", "h")))
	b.want("k", "h")
	if got := len(b.stored("k")); got != 8 {
		t.Errorf("%d messages", got)
	}
}

func TestResultsBesideOneAnotherStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"x","arguments":{}},{"type":"toolCall","id":"2","name":"x","arguments":{}}]}`
	result := func(id string) string {
		return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"x","content":[{"type":"text","text":"r%s"}],"isError":false}`, id, id)
	}
	for name, last := range map[string]string{"first": "r1", "last": "r2"} {
		l := b.lane(name, "g", "s")
		l.sync(entry("u", "", says("user", "u")), entry("c", "u", call), entry("r1", "c", result("1")), entry("r2", "c", result("2")), entry("a", last, says("assistant", "done")))
		got := text(b.window(name, 10_000))
		if want := strings.Join([]string{says("user", "u"), call, result("1"), result("2"), says("assistant", "done")}, "\n"); got != want {
			t.Errorf("after the %s result:\n%s", name, got)
		}
	}
}

func TestAHeartbeatTurnIsRecognised(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	_, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
		Session: l.session(), AdvancementKey: "t", IsHeartbeat: true, Admission: json.RawMessage(`{"entryId":"u"}`), Terminal: json.RawMessage(`{"entryId":"a"}`),
		Messages: []json.RawMessage{json.RawMessage(says("user", "poll")), json.RawMessage(says("assistant", "busy")), json.RawMessage(says("assistant", "done"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res := l.sync(entry("u", "", says("user", "poll")), entry("m", "u", says("assistant", "busy")), entry("a", "m", says("assistant", "done"))); res.Stored != 0 {
		t.Errorf("%+v", res)
	}
}

// What an after-turn, a batch or single calls brought has no ids: place and
// content tell, and equal words of another turn are another message.
func TestMessagesWithoutIDsAreRecognised(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	raw := func(texts ...string) (out []json.RawMessage) {
		for _, s := range texts {
			out = append(out, json.RawMessage(says("user", s)))
		}
		return out
	}
	if _, err := b.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: l.session(), Messages: raw("a", "ok")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: l.session(), Messages: raw("ok", "b")}); err != nil {
		t.Fatal(err)
	}
	other := b.lane("k", "h", "x")
	if _, err := b.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: other.session(), Messages: raw("ok")}); err != nil {
		t.Fatal(err)
	}
	res := l.sync(entry("1", "", says("user", "a")), entry("2", "1", says("user", "ok")), entry("3", "2", says("user", "ok")),
		entry("4", "3", says("user", "b")), entry("5", "4", says("user", "ok")))
	if res.Stored != 1 || res.Duplicates != 4 {
		t.Errorf("%+v", res)
	}
	b.want("k", "a ok ok b ok ok")
}

func TestTheKeysThatTheHostPutIntoMessagesDecide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	l.commit("t", "", "", `{"role":"user","content":"u","idempotencyKey":"i"}`, `{"role":"assistant","content":"a","responseId":"r"}`)
	res := l.sync(entry("1", "", `{"role":"user","content":"u, decorated","idempotencyKey":"i"}`), entry("2", "1", `{"role":"assistant","content":"a!","responseId":"r"}`))
	if res.Stored != 0 {
		t.Errorf("%+v", res)
	}
	b.want("k", "u a")
}

func TestTranscriptExpectations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	l.sync(entry("a", "", says("user", "a")))
	stale := int64(99)
	p := contextengine.TranscriptParams{
		Session: l.session(), Expectations: contextengine.Expectations{ExpectedHead: &stale},
		Entries: []json.RawMessage{json.RawMessage(entry("a", "", says("user", "a")))},
	}
	if res, err := b.Transcript(t.Context(), p); err != nil || res.Duplicates != 1 {
		t.Errorf("what is known was refused: %+v, %v", res, err)
	}
	p.Entries = append(p.Entries, json.RawMessage(entry("b", "a", says("user", "b"))))
	var refused *contextengine.StaleHeadError
	if _, err := b.Transcript(t.Context(), p); !errors.As(err, &refused) {
		t.Errorf("stale: %v", err)
	}
	if got := b.stored("k"); len(got) != 1 {
		t.Errorf("a refused page was stored: %v", got)
	}
}

func TestBadPagesChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := entry("a", "", says("user", "a"))
	for name, bad := range map[string]string{
		"no object": `7`, "no type": `{}`, "no message": `{"type":"message"}`, "a message without a role": `{"type":"message","message":{}}`,
		"a message that is text": `{"type":"message","message":"x"}`, "content that is none": `{"type":"message","message":{"role":"user","content":5}}`,
		"invalid JSON": `{"type":`, "invalid UTF-8": "{\"type\":\"x\",\"a\":\"\xff\"}", "nested too deeply": `{"type":"x","a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	} {
		_, err := b.Transcript(t.Context(), contextengine.TranscriptParams{
			Session: b.lane("k", "g", "s").session(), Entries: []json.RawMessage{json.RawMessage(good), json.RawMessage(bad)},
		})
		var invalid *contextengine.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, "entries[1]") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.store.Session(t.Context(), "t", "k"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("a refused page opened the session: %v", err)
	}
	cursor := strings.Repeat("x", 20_000)
	for field, p := range map[string]contextengine.TranscriptParams{
		"sessionId": {Session: on("k")}, "cursor": {Session: b.lane("k", "", "s").session(), Cursor: &cursor},
	} {
		var invalid *contextengine.InvalidError
		if _, err := b.Transcript(t.Context(), p); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The same pages at once, from several callers: each entry is stored once.
func TestTheSamePagesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	for i := range 40 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("e", i-1)
		}
		l.log = append(l.log, entry(fmt.Sprint("e", i), parent, says("user", fmt.Sprint("m", i))))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for from := 0; from < 40; from += 10 {
				p := contextengine.TranscriptParams{Session: l.session()}
				for _, e := range l.log[from : from+10] {
					p.Entries = append(p.Entries, json.RawMessage(e))
				}
				if _, err := b.Transcript(t.Context(), p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := b.stored("k"); len(got) != 40 {
		t.Errorf("%d messages", len(got))
	}
	if got := b.shows("k"); len(got) != 40 || got[39] != "m39" {
		t.Errorf("%v", got)
	}
}

// A rewind keeps what another gateway said, and a reset of either cuts both.
func TestARewindBesideAnotherGateway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g, h := b.lane("k", "g", "s1"), b.lane("k", "h", "x1")
	g.sync(entry("a", "", says("user", "a")), entry("b", "a", says("assistant", "b")))
	h.sync(entry("p", "", says("user", "p")), entry("q", "p", says("assistant", "q")))
	g.sync(entry("c", "b", says("user", "c")), entry("d", "c", says("assistant", "d")))
	b.want("k", "a b p q c d")
	r := b.lane("k", "g", "s2")
	r.log = append(r.log, g.log...)
	r.sync(`{"type":"leaf","id":"l","parentId":"d","targetId":"b"}`, entry("e", "b", says("user", "e")))
	b.want("k", "a b p q e")
	h.sync(`{"type":"reset","id":"r","parentId":"q","reason":"new"}`, entry("s", "r", says("user", "s")))
	b.want("k", "s")
	// The first gateway has not heard of it: its rewind brings nothing back.
	z := b.lane("k", "g", "s3")
	z.log = append(z.log, r.log...)
	z.sync(`{"type":"leaf","id":"l3","parentId":"e","targetId":"d"}`)
	b.want("k", "s")
}

func TestACompactedSuccessorHidesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lane("k", "g", "s1").sync(entry("a", "", says("user", "a")), entry("b", "a", says("assistant", "b")), entry("c", "b", says("user", "c")), entry("d", "c", says("assistant", "d")))
	b.lane("k", "g", "s2").sync(`{"type":"session","id":"s2"}`, `{"type":"compaction","id":"k","parentId":null,"summary":"a and b","firstKeptEntryId":"c"}`,
		entry("c", "k", says("user", "c")), entry("d", "c", says("assistant", "d")), entry("e", "d", says("user", "e")))
	b.want("k", "a b c d e")
}

func TestACompactionNamesTheHostsEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	for i := range 30 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("e", i-1)
		}
		role := [2]string{"user", "assistant"}[i%2]
		l.log = append(l.log, entry(fmt.Sprint("e", i), parent, says(role, strings.Repeat(fmt.Sprint("word", i, " "), 60))))
	}
	l.page(0, 30)
	res := b.compact("k", 2000)
	if res.Result == nil || !strings.HasPrefix(res.Result.FirstKeptEntryID, "e") {
		t.Errorf("%+v", res.Result)
	}
	// What a rewind leaves of the summaries lies on the path.
	r := b.lane("k", "g", "s2")
	r.log = append(r.log, l.log...)
	r.sync(`{"type":"leaf","id":"l","parentId":"e29","targetId":"e3"}`)
	if got := len(b.window("k", 100_000).Messages); got != 4 {
		t.Errorf("%d messages after a rewind into what was summarized", got)
	}
	r.sync(`{"type":"leaf","id":"l2","parentId":"e3","targetId":"e29"}`)
	back := b.window("k", 2000)
	if len(back.Messages) == 0 || !strings.Contains(text(back), "word29") || back.Epoch != 4 {
		t.Errorf("epoch %d, %d messages", back.Epoch, len(back.Messages))
	}
}

func TestAnImportedListIsRecognisedInATranscript(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := contextengine.IngestBatchParams{Session: on("k")}
	for i, text := range []string{"a", "ok", "ok", "b", "ok"} {
		p.Messages = append(p.Messages, json.RawMessage(says("user", text)))
		p.IdempotencyKeys = append(p.IdempotencyKeys, fmt.Sprint(i))
	}
	if _, err := b.IngestBatch(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l := b.lane("k", "import", "s")
	res := l.sync(entry("1", "", says("user", "a")), entry("2", "1", says("user", "ok")), entry("3", "2", says("user", "ok")), entry("4", "3", says("user", "b")), entry("5", "4", says("user", "ok")),
		`{"type":"reset","id":"r","parentId":"5"}`, entry("6", "r", says("user", "ok")))
	if res.Messages != 1 {
		t.Errorf("%+v", res)
	}
	b.want("k", "ok")
}

func TestMessagesHangWhereTheHostHasThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lane("k", "g", "s").sync(entry("a", "", says("user", "a")), `{"type":"reset","id":"r","parentId":"a"}`,
		entry("b", "r", says("user", "b")), entry("c", "b", says("assistant", "c")), entry("d", "b", says("assistant", "d")),
		entry("e", "c", says("user", "e")), `{"type":"leaf","id":"l","parentId":"e","targetId":"d"}`, entry("f", "d", says("user", "f")))
	b.want("k", "b d f")
	names := map[int64]string{}
	got := map[string]string{}
	for _, e := range b.events("k") {
		if e.Type == events.MessageAppended {
			var m struct{ Content string }
			if err := json.Unmarshal(e.Body, &m); err != nil {
				t.Fatal(err)
			}
			names[e.Seq] = m.Content
			got[m.Content] = names[e.ParentSeq]
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "", "b": "", "c": "b", "d": "b", "e": "c", "f": "d"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestOneMessageByTwoRoutesUnderTwoIDs: what single calls brought under keys of
// their own comes once more as entries with ids of theirs. Repeats are real.
func TestOneMessageByTwoRoutesUnderTwoIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s")
	said := []string{says("user", "hi"), says("system", "tick"), says("system", "tick"), says("system", "tick"), says("system", "tick"), says("user", "yes"), says("user", "yes")}
	var entries []string
	for i, raw := range said {
		p := contextengine.IngestParams{Session: l.session(), Message: json.RawMessage(raw), IdempotencyKey: fmt.Sprint("live", i)}
		for want := range 2 { // the second one is a retry
			if res, err := b.Ingest(t.Context(), p); err != nil || res.Duplicate != (want == 1) || res.Seq != int64(i+1) {
				t.Fatalf("%d: %+v %v", i, res, err)
			}
		}
		entries = append(entries, entry(fmt.Sprint("e", i+1), strings.TrimSuffix(fmt.Sprint("e", i), "e0"), raw))
	}
	if res := l.sync(entries...); res.Stored != 0 || res.Duplicates != len(said) {
		t.Errorf("%+v", res)
	}
	b.want("k", "hi tick tick tick tick yes yes")
	if res := l.sync(entry("e8", "e7", says("system", "tick")), entry("e9", "e8", says("user", "yes"))); res.Stored != 2 {
		t.Errorf("real repeats: %+v", res)
	}
	b.want("k", "hi tick tick tick tick yes yes tick yes")
}
