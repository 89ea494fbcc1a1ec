package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plenty is a budget that no session here outgrows.
const plenty = 1_000_000

// machine runs a program against the nodes and the model.
type machine struct {
	t     *testing.T
	nodes []*httptest.Server
	name  string // of this program, in all its keys
	said  int
	live  []*session
	gone  []*session
	made  int
}

// TestTheAPIIsWhatAModelSays runs random programs.
func TestTheAPIIsWhatAModelSays(t *testing.T) {
	t.Parallel()
	servers := nodes(t)
	programs := 0
	rapid.Check(t, func(rt *rapid.T) {
		programs++
		m := &machine{t: t, nodes: servers, name: fmt.Sprintf("program%d", programs)}
		m.open(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"open": m.open, "append": m.append, "append2": m.append, "append again": m.again, "expect": m.expect,
			"commit": m.commit, "compact": m.compact, "reset": m.reset, "rewind": m.rewind, "fork": m.fork,
			"erase": m.erase, "write late": m.late, "": m.check,
		})
		for _, s := range m.live {
			m.log(rt, s)
		}
	})
}

func (m *machine) call(rt *rapid.T, method string, s *session, rest, body string) answer {
	return call(m.t, m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(rt, "node")], method, s.key, rest, body)
}

// ok makes a call that must be answered with 200, and decodes it.
func (m *machine) ok(rt *rapid.T, s *session, rest, body string, into any) {
	if a := m.call(rt, http.MethodPost, s, rest, body); a.status != http.StatusOK || json.Unmarshal(a.body, into) != nil {
		rt.Fatalf("%s of %s with %s: %s", rest, s.key, body, a)
	}
}

func (m *machine) draw(rt *rapid.T) *session {
	return m.live[rapid.IntRange(0, len(m.live)-1).Draw(rt, "session")]
}

// user is a message unlike any other, in bytes that are no canonical JSON.
func (m *machine) user() string {
	m.said++
	return fmt.Sprintf(`{ "role":"user","content":"%s says %d: <b>\u00e9</b> %s" , "n":1.50e1}`, m.name, m.said, strings.Repeat("word ", 20))
}

func (m *machine) fresh() *session {
	m.made++
	return newSession(fmt.Sprintf("%s/%d", m.name, m.made))
}

func (m *machine) open(rt *rapid.T) {
	if len(m.live) > 3 {
		rt.Skip("enough")
	}
	s := m.fresh()
	m.live = append(m.live, s)
	m.write(rt, s, -1)
}

func (m *machine) append(rt *rapid.T) { m.write(rt, m.draw(rt), -1) }

type written struct {
	Seq, Head, Epoch int
	Duplicate        bool
	Status           string
}

func (m *machine) write(rt *rapid.T, s *session, expected int) {
	raw := m.user()
	k := keyed{key: fmt.Sprintf("k%d", m.said), raws: []string{raw}}
	body := fmt.Sprintf(`{"message":%s,"idempotencyKey":%q`, raw, k.key)
	if expected >= 0 {
		body += fmt.Sprintf(`,"expectedHead":%d`, expected)
	}
	var res written
	m.ok(rt, s, "/ingest", body+"}", &res)
	s.message(raw)
	k.seq = s.head()
	s.keys, s.hostHead = append(s.keys, k), s.head()
	if res.Seq != s.head() || res.Head != s.head() || res.Duplicate {
		rt.Fatalf("%s answers %+v, want seq %d", s.key, res, s.head())
	}
}

// again repeats a request under its key, with its payload or another one.
func (m *machine) again(rt *rapid.T) {
	s := m.draw(rt)
	if len(s.keys) == 0 {
		rt.Skip("nothing was said under a key")
	}
	k := s.keys[rapid.IntRange(0, len(s.keys)-1).Draw(rt, "key")]
	var res written
	m.ok(rt, s, "/ingest", fmt.Sprintf(`{"message":%s,"idempotencyKey":%q}`, k.raws[0], k.key), &res)
	if !res.Duplicate || res.Seq != k.seq {
		rt.Fatalf("%s again answers %+v, want seq %d", k.key, res, k.seq)
	}
	if a := m.call(rt, http.MethodPost, s, "/ingest", fmt.Sprintf(`{"message":%s,"idempotencyKey":%q}`, m.user(), k.key)); a.slug() != "idempotency-conflict" {
		rt.Fatalf("%s with another payload: %s", k.key, a)
	}
	if len(s.turns) == 0 {
		return
	}
	turn := s.turns[rapid.IntRange(0, len(s.turns)-1).Draw(rt, "turn")]
	m.ok(rt, s, "/commit-turn", fmt.Sprintf(`{"advancementKey":%q,"messages":[%s]}`, turn.key, strings.Join(turn.raws, ",")), &res)
	if res.Status != "duplicate" {
		rt.Fatalf("%s again answers %+v", turn.key, res)
	}
}

// expect writes under the head that a host last wrote, or one that it may have
// read since, and under others.
func (m *machine) expect(rt *rapid.T) {
	s := m.draw(rt)
	expected := rapid.IntRange(0, s.head()+2).Draw(rt, "expected")
	if expected >= s.hostHead && expected <= s.head() {
		m.write(rt, s, expected)
		return
	}
	a := m.call(rt, http.MethodPost, s, "/ingest", fmt.Sprintf(`{"message":%s,"expectedHead":%d}`, m.user(), expected))
	var p struct{ Head int }
	if a.status != http.StatusPreconditionFailed || json.Unmarshal(a.body, &p) != nil || p.Head != s.head() {
		rt.Fatalf("%s expected at %d, it is at %d, of hosts at %d: %s", s.key, expected, s.head(), s.hostHead, a)
	}
}

func (m *machine) commit(rt *rapid.T) {
	s := m.draw(rt)
	k := keyed{}
	for range rapid.IntRange(1, 4).Draw(rt, "messages") {
		k.raws = append(k.raws, m.user())
	}
	k.key = fmt.Sprintf("t%d", m.said)
	var res written
	m.ok(rt, s, "/commit-turn", fmt.Sprintf(`{"advancementKey":%q,"messages":[%s],"tokenBudget":%d}`, k.key, strings.Join(k.raws, ","), plenty), &res)
	for _, raw := range k.raws {
		s.message(raw)
	}
	s.event(s.shown) // turn.committed
	s.event(s.shown) // turn.completed
	s.turns, s.hostHead = append(s.turns, k), s.head()
	if res.Status != "committed" || res.Head != s.head() || res.Epoch != s.epoch {
		rt.Fatalf("%s answers %+v, want head %d in epoch %d", s.key, res, s.head(), s.epoch)
	}
}

// catchUp takes what the engine wrote since into the model: it shows nothing.
func (m *machine) catchUp(rt *rapid.T, s *session) {
	var row struct{ Head, Epoch int }
	if a := m.call(rt, http.MethodGet, s, "", ""); a.status != http.StatusOK || json.Unmarshal(a.body, &row) != nil {
		rt.Fatalf("state of %s: %s", s.key, a)
	}
	for s.head() < row.Head {
		s.event(s.shown)
	}
	if row.Epoch != s.epoch {
		rt.Fatalf("%s is in epoch %d, want %d", s.key, row.Epoch, s.epoch)
	}
}

func (m *machine) compact(rt *rapid.T) {
	s := m.draw(rt)
	var res struct {
		OK, Compacted bool
		Epoch         int
	}
	m.ok(rt, s, "/compact", fmt.Sprintf(`{"force":true,"tokenBudget":%d}`, rapid.SampledFrom([]int{600, 2000, plenty}).Draw(rt, "budget")), &res)
	if res.Compacted {
		s.compacted = true
		s.epoch++
	}
	m.catchUp(rt, s)
}

type stepped struct{ Head, Epoch int }

// stepped is an event by which the window changes.
func (m *machine) stepped(rt *rapid.T, s *session, res stepped, shown []item) {
	s.event(shown)
	s.epoch++
	s.hostHead = s.head()
	if want := (stepped{s.head(), s.epoch}); res != want {
		rt.Fatalf("%s answers %+v, want %+v", s.key, res, want)
	}
}

func (m *machine) reset(rt *rapid.T) {
	s := m.draw(rt)
	var res stepped
	keep := rapid.IntRange(0, s.head()).Draw(rt, "keep from")
	if keep == 0 {
		m.ok(rt, s, "/reset", `{}`, &res)
		m.stepped(rt, s, res, nil)
		return
	}
	m.ok(rt, s, "/reset", fmt.Sprintf(`{"keepFromSeq":%d}`, keep), &res)
	m.stepped(rt, s, res, s.from(keep))
}

func (m *machine) rewind(rt *rapid.T) {
	s := m.draw(rt)
	to := rapid.IntRange(1, s.head()).Draw(rt, "to")
	var res stepped
	m.ok(rt, s, "/rewind", fmt.Sprintf(`{"toSeq":%d}`, to), &res)
	m.stepped(rt, s, res, s.rewound(to))
	if a := m.call(rt, http.MethodPost, s, "/rewind", fmt.Sprintf(`{"toSeq":%d}`, s.head()+1)); a.status/100 != 4 {
		rt.Fatalf("a rewind beyond the head of %s: %s", s.key, a)
	}
}

func (m *machine) fork(rt *rapid.T) {
	if len(m.live) > 5 {
		rt.Skip("enough")
	}
	s, child := m.draw(rt), m.fresh()
	at := rapid.IntRange(1, s.head()).Draw(rt, "at")
	var res stepped
	m.ok(rt, s, "/fork", fmt.Sprintf(`{"newSessionKey":%q,"atSeq":%d}`, child.key, at), &res)
	child.parent, child.compacted = s, s.compacted
	child.event(s.at[at])
	child.leaves = []int{1} // no host has written yet
	if res != (stepped{1, 1}) {
		rt.Fatalf("the fork %s begins at %+v", child.key, res)
	}
	if a := m.call(rt, http.MethodPost, s, "/fork", fmt.Sprintf(`{"newSessionKey":%q}`, child.key)); a.status/100 != 4 {
		rt.Fatalf("a fork onto the key of a session: %s", a)
	}
	m.live = append(m.live, child)
}

func (m *machine) erase(rt *rapid.T) {
	if len(m.live) < 2 {
		rt.Skip("the last one")
	}
	s := m.draw(rt)
	if a := m.call(rt, http.MethodDelete, s, "", ""); a.status != http.StatusOK {
		rt.Fatalf("erasure of %s: %s", s.key, a)
	}
	m.live = slices.DeleteFunc(m.live, func(x *session) bool { return x == s })
	m.gone = append(m.gone, s)
	for _, heir := range m.live {
		if heir.descendsFrom(s) {
			var row struct{ Epoch int }
			if a := m.call(rt, http.MethodGet, heir, "", ""); json.Unmarshal(a.body, &row) != nil || row.Epoch < heir.epoch || row.Epoch > heir.epoch+1 {
				rt.Fatalf("%s, whose ancestor was erased in epoch %d: %s", heir.key, heir.epoch, a)
			}
			heir.epoch = row.Epoch
			heir.forget(s)
			m.catchUp(rt, heir)
		}
	}
}

// late: what was erased is gone, and refuses writes.
func (m *machine) late(rt *rapid.T) {
	if len(m.gone) == 0 {
		rt.Skip("nothing was erased")
	}
	s := m.gone[rapid.IntRange(0, len(m.gone)-1).Draw(rt, "erased")]
	if a := m.call(rt, http.MethodPost, s, "/ingest", fmt.Sprintf(`{"message":%s}`, m.user())); a.slug() != "session-erased" {
		rt.Fatalf("a late write to %s: %s", s.key, a)
	}
	for _, rest := range []string{"", "/events", "/summaries"} {
		if a := m.call(rt, http.MethodGet, s, rest, ""); a.status != http.StatusNotFound {
			rt.Fatalf("%s of %s: %s", rest, s.key, a)
		}
	}
	m.window(rt, s, 0, nil, true)
}

// check looks at a session's window now and as of an earlier seq.
func (m *machine) check(rt *rapid.T) {
	for _, s := range m.live {
		m.window(rt, s, 0, s.shown, !s.compacted)
	}
	s := m.draw(rt)
	at := rapid.IntRange(1, s.head()).Draw(rt, "as of")
	m.window(rt, s, at, s.at[at], !s.compacted)
}

// window holds a window against what should be shown. Where summaries may stand
// in front, the rest is the end of it.
func (m *machine) window(rt *rapid.T, s *session, asOf int, want []item, whole bool) {
	body := fmt.Sprintf(`{"tokenBudget":%d}`, plenty)
	if asOf > 0 {
		body = fmt.Sprintf(`{"tokenBudget":%d,"asOfSeq":%d}`, plenty, asOf)
	}
	var w struct {
		Messages    []json.RawMessage
		Head, Epoch int
	}
	m.ok(rt, s, "/assemble", body, &w)
	var got strings.Builder
	summaries := 0
	for _, raw := range w.Messages {
		if strings.Contains(string(raw), "<summary>") {
			summaries++
			continue
		}
		got.Write(raw)
		got.WriteByte('\n')
	}
	if whole && summaries > 0 || summaries == 0 && got.String() != texts(want) || !strings.HasSuffix(texts(want), got.String()) {
		rt.Fatalf("%s as of %d shows %d summaries and\n%swant\n%s", s.key, asOf, summaries, got.String(), texts(want))
	}
	if asOf == 0 && !slices.Contains(m.gone, s) && (w.Head != s.head() || w.Epoch != s.epoch) {
		rt.Fatalf("%s is shown at head %d in epoch %d, want %d and %d", s.key, w.Head, w.Epoch, s.head(), s.epoch)
	}
}

// log holds every event of a session against the model.
func (m *machine) log(rt *rapid.T, s *session) {
	var page struct {
		Events []struct {
			Seq     int
			Message json.RawMessage
		}
	}
	if a := m.call(rt, http.MethodGet, s, "/events?limit=500", ""); a.status != http.StatusOK || json.Unmarshal(a.body, &page) != nil {
		rt.Fatalf("log of %s: %s", s.key, a)
	}
	if len(page.Events) != s.head() {
		rt.Fatalf("%s has %d events, want %d", s.key, len(page.Events), s.head())
	}
	for i, e := range page.Events {
		if e.Seq != i+1 || string(e.Message) != s.raws[e.Seq] {
			rt.Fatalf("seq %d of %s is %s, want %s", e.Seq, s.key, e.Message, s.raws[i+1])
		}
	}
}
