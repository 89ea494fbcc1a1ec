package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
)

// lane is a transcript of a host as a test sees it.
type lane struct {
	b            *bundle
	key          string
	gateway, sid string
	log          []string
	cursor       int
}

func (b *bundle) lane(key, gateway, sid string) *lane {
	return &lane{b: b, key: key, gateway: gateway, sid: sid}
}

func (l *lane) session() contextengine.Session {
	s := on(l.key)
	s.GatewayID, s.SessionID = l.gateway, l.sid
	return s
}

// sync sends what the host has beyond what it sent.
func (l *lane) sync(entries ...string) contextengine.TranscriptResult {
	l.b.t.Helper()
	l.log = append(l.log, entries...)
	return l.page(l.cursor, len(l.log))
}

func (l *lane) page(from, to int) contextengine.TranscriptResult {
	l.b.t.Helper()
	cursor := fmt.Sprint("at ", to)
	p := contextengine.TranscriptParams{Session: l.session(), Cursor: &cursor, Entries: []json.RawMessage{}}
	for _, e := range l.log[from:to] {
		p.Entries = append(p.Entries, json.RawMessage(e))
	}
	res, err := l.b.Transcript(l.b.t.Context(), p)
	if err != nil {
		l.b.t.Fatal(err)
	}
	if res.Stored+res.Duplicates != to-from {
		l.b.t.Errorf("stored %d and duplicates %d of %d entries", res.Stored, res.Duplicates, to-from)
	}
	l.cursor = to
	return res
}

func (l *lane) commit(key, admission, terminal string, messages ...string) contextengine.CommitTurnResult {
	l.b.t.Helper()
	p := contextengine.CommitTurnParams{Session: l.session(), AdvancementKey: key}
	if admission != "" {
		p.Admission = json.RawMessage(fmt.Sprintf(`{"entryId":%q,"sessionId":%q}`, admission, l.sid))
		p.Terminal = json.RawMessage(fmt.Sprintf(`{"entryId":%q,"sessionId":%q}`, terminal, l.sid))
	}
	for _, m := range messages {
		p.Messages = append(p.Messages, json.RawMessage(m))
	}
	res, err := l.b.CommitTurn(l.b.t.Context(), p)
	if err != nil {
		l.b.t.Fatal(err)
	}
	return res
}

func says(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

func entry(id, parent, msg string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":%s}`, id, p, msg)
}

// shows are the texts of the window.
func (b *bundle) shows(key string) []string {
	b.t.Helper()
	var out []string
	for _, m := range b.window(key, 100_000).Messages {
		var v struct {
			Content any `json:"content"`
		}
		if err := json.Unmarshal(m, &v); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, fmt.Sprint(v.Content))
	}
	return out
}

func (b *bundle) want(key string, texts string) {
	b.t.Helper()
	if diff := cmp.Diff(strings.Fields(texts), append([]string{}, b.shows(key)...)); diff != "" {
		b.t.Errorf("window (-want +got):\n%s", diff)
	}
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s1")
	res := l.sync(`{"type":"session","version":4,"id":"s1"}`, `{"type":"model_change","id":"m","parentId":null}`,
		entry("u1", "m", says("user", "u1")), entry("a1", "u1", says("assistant", "a1")))
	if res.Stored != 4 || res.Epoch != 1 {
		t.Errorf("%+v", res)
	}
	b.want("k", "u1 a1")
	if res := l.page(0, 4); res.Duplicates != 4 || res.Epoch != 1 {
		t.Errorf("the same page again: %+v", res)
	}
	b.want("k", "u1 a1")
	if res := l.commit("t2", "u2", "a2", says("user", "u2"), says("assistant", "a2")); res.Status != "committed" {
		t.Errorf("%+v", res)
	}
	b.want("k", "u1 a1 u2 a2")
	if res := l.sync(entry("u2", "a1", says("user", "u2")), entry("a2", "u2", says("assistant", "a2"))); res.Stored != 0 {
		t.Errorf("a committed turn: %+v", res)
	}
	b.want("k", "u1 a1 u2 a2")

	// Rewind: a copy of the log under a new id, and a leaf move.
	r := b.lane("k", "g", "s2")
	r.log = append(r.log, `{"type":"session","version":4,"id":"s2"}`)
	r.log = append(r.log, l.log[1:]...)
	if res := r.sync(`{"type":"leaf","id":"l1","parentId":"a2","targetId":"a1"}`); res.Epoch != 2 || res.Stored != 2 {
		t.Errorf("rewind: %+v", res)
	}
	b.want("k", "u1 a1")
	r.commit("t3", "u3", "a3", says("user", "u3"), says("assistant", "a3"))
	if res := r.sync(entry("u3", "a1", says("user", "u3")), entry("a3", "u3", says("assistant", "a3"))); res.Stored != 0 || res.Epoch != 2 {
		t.Errorf("after the rewind: %+v", res)
	}
	b.want("k", "u1 a1 u3 a3")

	// Branch switch back.
	s := b.lane("k", "g", "s3")
	s.log = append(s.log, r.log[1:]...)
	if res := s.sync(`{"type":"leaf","id":"l2","parentId":"a3","targetId":"a2"}`); res.Epoch != 3 || res.Stored != 1 {
		t.Errorf("branch switch: %+v", res)
	}
	b.want("k", "u1 a1 u2 a2")

	// Another gateway joins.
	o := b.lane("k", "h", "x1")
	if res := o.sync(entry("p", "", says("user", "p")), entry("q", "p", says("assistant", "q"))); res.Epoch != 3 {
		t.Errorf("another gateway: %+v", res)
	}
	b.want("k", "u1 a1 u2 a2 p q")

	// A reset of one cuts all.
	if res := s.sync(`{"type":"reset","id":"r1","parentId":"a2","reason":"new"}`, entry("u5", "r1", says("user", "u5"))); res.Epoch != 4 {
		t.Errorf("reset: %+v", res)
	}
	b.want("k", "u5")
	if res := s.page(0, len(s.log)); res.Stored != 0 || res.Epoch != 4 {
		t.Errorf("all of it again: %+v", res)
	}
	b.want("k", "u5")
}

func TestCommitAfterTranscript(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.lane("k", "g", "s1")
	u := `{"role":"user","content":"u1","idempotencyKey":"i1"}`
	a := `{"role":"assistant","content":"a1","responseId":"r1"}`
	l.sync(entry("u1", "", u), entry("a1", "u1", a))
	for name, anchors := range map[string][2]string{"ids": {"u1", "a1"}, "keys": {}} {
		res := l.commit(name, anchors[0], anchors[1], u, a)
		if res.Status != contextengine.TurnDuplicate {
			t.Errorf("%s: %+v", name, res)
		}
		if res := l.commit(name, anchors[0], anchors[1], u, a); res.Status != contextengine.TurnDuplicate {
			t.Errorf("%s again: %+v", name, res)
		}
	}
	b.want("k", "u1 a1")
	// A transcript that ends within the turn: the commit brings the rest.
	l.sync(entry("u2", "a1", says("user", "u2")), entry("c2", "u2", says("assistant", "c2")))
	if res := l.commit("t2", "u2", "a2", says("user", "u2"), says("assistant", "c2"), says("assistant", "a2")); res.Status != contextengine.TurnCommitted {
		t.Errorf("%+v", res)
	}
	b.want("k", "u1 a1 u2 c2 a2")
	if res := l.sync(entry("a2", "c2", says("assistant", "a2"))); res.Stored != 0 {
		t.Errorf("%+v", res)
	}
	b.want("k", "u1 a1 u2 c2 a2")
	if _, err := b.CommitTurn(t.Context(), contextengine.CommitTurnParams{
		Session: l.session(), AdvancementKey: "t2", Messages: []json.RawMessage{json.RawMessage(u)},
	}); err == nil {
		t.Error("another turn under the same key was taken")
	}
}

func (b *bundle) reset(l *lane) contextengine.StepResult {
	b.t.Helper()
	res, err := b.Reset(b.t.Context(), l.session(), nil, "new")
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func TestAResetThatACallMadeCutsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l, o := b.lane("k", "g", "s1"), b.lane("k", "h", "x1")
	l.sync(entry("u1", "", says("user", "u1")))
	o.commit("o1", "p1", "q1", says("user", "p1"), says("assistant", "q1"))
	b.reset(l)
	b.want("k", "")
	o.commit("o2", "p2", "q2", says("user", "p2"), says("assistant", "q2"))
	b.want("k", "p2 q2")
	if res := l.sync(`{"type":"reset","id":"r1","parentId":"u1","reason":"new"}`, `{"type":"model_change","id":"m","parentId":"r1"}`); res.Epoch != 2 || res.Stored != 1 {
		t.Errorf("%+v", res)
	}
	b.want("k", "p2 q2")
	o.sync(entry("p1", "", says("user", "p1")), entry("q1", "p1", says("assistant", "q1")), entry("p2", "q1", says("user", "p2")))
	l.commit("t2", "u2", "a2", says("user", "u2"), says("assistant", "a2"))
	b.want("k", "p2 q2 u2 a2")

	// The next one is another reset, whoever shows it.
	if res := l.sync(entry("u2", "m", says("user", "u2")), entry("a2", "u2", says("assistant", "a2")),
		`{"type":"reset","id":"r2","parentId":"a2","reason":"new","firstKeptEntryId":"a2"}`); res.Epoch != 3 {
		t.Errorf("%+v", res)
	}
	b.want("k", "a2")
}

func TestBootstrapOfALaneThatSharesASession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	boot := func(l *lane, texts ...string) contextengine.BootstrapResult {
		t.Helper()
		p := contextengine.BootstrapParams{Session: l.session()}
		for _, text := range texts {
			p.Messages = append(p.Messages, json.RawMessage(says("user", text)))
		}
		res, err := b.Bootstrap(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	l, o := b.lane("k", "g", "s1"), b.lane("k", "h", "x1")
	l.commit("t1", "", "", says("user", "a1"))
	if res := boot(o, "b1", "b2"); !res.Bootstrapped || res.ImportedMessages != 2 {
		t.Errorf("another gateway joins: %+v", res)
	}
	b.want("k", "a1 b1 b2")
	if res := boot(l, "a1", "a2"); res.ImportedMessages != 1 {
		t.Errorf("a gateway's own history goes on: %+v", res)
	}
	if res := boot(o, "b1", "b2"); res.ImportedMessages != 0 || !res.Bootstrapped {
		t.Errorf("the same again: %+v", res)
	}
	b.want("k", "a1 b1 b2 a2")
	if res := boot(o, "c1"); res.Bootstrapped {
		t.Errorf("another history of a known gateway was taken: %+v", res)
	}
	if res := o.sync(entry("e1", "", says("user", "b1")), entry("e2", "e1", says("user", "b2")), entry("e3", "e2", says("user", "b2"))); res.Stored != 1 {
		t.Errorf("a bootstrapped history by transcript: %+v", res)
	}
	b.want("k", "a1 b1 b2 a2 b2")
}
