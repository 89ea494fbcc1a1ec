package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
)

// simHost is a gateway: its transcript as a tree, and what the service was told
// of it. It knows nothing of how the service stores.
type simHost struct {
	t       *rapid.T
	b       *bundle
	key     string
	gateway string
	lives   int
	sid     string
	entries []simEntry
	byID    map[string]*simEntry
	leaf    string
	// outbox are commits that the service did not get yet.
	outbox []contextengine.CommitTurnParams
	ids    *int
}

type simEntry struct {
	id, parent, kind, target, text string
	raw                            string
}

func (h *simHost) session() contextengine.Session {
	s := on(h.key)
	s.GatewayID, s.SessionID = h.gateway, h.sid
	return s
}

func (h *simHost) begin() {
	h.lives++
	h.sid = fmt.Sprintf("%s-%d", h.gateway, h.lives)
}

func (h *simHost) add(kind, text, target string) string {
	*h.ids++
	e := simEntry{id: fmt.Sprintf("%s%d", h.gateway, *h.ids), parent: h.leaf, kind: kind, target: target, text: text}
	members := map[string]any{"type": kind, "id": e.id, "parentId": nil}
	if e.parent != "" {
		members["parentId"] = e.parent
	}
	switch kind {
	case "user", "assistant":
		members["type"] = "message"
		members["message"] = map[string]any{"role": kind, "content": text}
	case "leaf":
		members["targetId"] = nil
		if target != "" {
			members["targetId"] = target
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		h.t.Fatal(err)
	}
	e.raw = string(raw)
	h.entries = append(h.entries, e)
	h.byID[e.id] = &e
	if kind == "leaf" {
		h.leaf = target
	} else {
		h.leaf = e.id
	}
	return e.id
}

// path is what the host shows: entry ids, oldest first.
func (h *simHost) path() []string {
	var out []string
	for id := h.leaf; id != ""; {
		e := h.byID[id]
		if e.kind == "reset" {
			break
		}
		if e.kind == "user" || e.kind == "assistant" {
			out = append(out, id)
		}
		id = e.parent
	}
	slices.Reverse(out)
	return out
}

func (h *simHost) texts(ids []string) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, h.byID[id].text)
	}
	return out
}

// turn runs a turn; its commit arrives, is lost for ever, or waits.
func (h *simHost) turn() {
	p := contextengine.CommitTurnParams{Session: h.session()}
	n := rapid.IntRange(2, 4).Draw(h.t, "messages")
	var first, last string
	for i := range n {
		role := "user"
		if i > 0 {
			role = "assistant"
		}
		text := "ok" // real repeats
		if rapid.IntRange(0, 3).Draw(h.t, "repeat") > 0 {
			text = fmt.Sprintf("%s.%d", h.gateway, *h.ids)
		}
		if rapid.IntRange(0, 4).Draw(h.t, "bookkeeping") == 0 {
			h.add("custom", "", "")
		}
		last = h.add(role, text, "")
		if i == 0 {
			first = last
		}
		p.Messages = append(p.Messages, json.RawMessage(fmt.Sprintf(`{"content":%q,"role":%q}`, text, role)))
	}
	p.AdvancementKey = "turn-" + first
	p.Admission = json.RawMessage(fmt.Sprintf(`{"entryId":%q}`, first))
	p.Terminal = json.RawMessage(fmt.Sprintf(`{"entryId":%q}`, last))
	switch rapid.SampledFrom([]string{"now", "now", "later", "never"}).Draw(h.t, "commit") {
	case "now":
		h.commit(p)
	case "later":
		h.outbox = append(h.outbox, p)
	}
}

func (h *simHost) commit(p contextengine.CommitTurnParams) {
	for range rapid.IntRange(1, 2).Draw(h.t, "deliveries") {
		if _, err := h.b.CommitTurn(h.t.Context(), p); err != nil {
			h.t.Fatalf("commit: %v", err)
		}
	}
}

func (h *simHost) drain() {
	for _, p := range h.outbox {
		h.commit(p)
	}
	h.outbox = nil
}

func (h *simHost) page(from, to int) {
	cursor := fmt.Sprint(to)
	p := contextengine.TranscriptParams{Session: h.session(), Cursor: &cursor, Entries: []json.RawMessage{}}
	for _, e := range h.entries[from:to] {
		p.Entries = append(p.Entries, json.RawMessage(e.raw))
	}
	res, err := h.b.Transcript(h.t.Context(), p)
	if err != nil {
		h.t.Fatalf("transcript: %v", err)
	}
	if res.Stored+res.Duplicates != len(p.Entries) {
		h.t.Fatalf("%+v of %d entries", res, len(p.Entries))
	}
}

// sync brings the service up to the transcript's end, in pages split anywhere,
// some of them twice; unless whole, it may stop in between.
func (h *simHost) sync(whole bool) {
	got, err := h.b.TranscriptCursor(h.t.Context(), h.session())
	if err != nil {
		h.t.Fatal(err)
	}
	at := 0
	if got.Cursor != nil {
		if _, err := fmt.Sscan(*got.Cursor, &at); err != nil {
			h.t.Fatal(err)
		}
	}
	for at < len(h.entries) {
		to := at + rapid.IntRange(1, min(len(h.entries)-at, 12)).Draw(h.t, "page")
		h.page(at, to)
		if rapid.IntRange(0, 5).Draw(h.t, "again") == 0 {
			h.page(rapid.IntRange(0, at).Draw(h.t, "from"), to)
		}
		at = to
		if !whole && rapid.IntRange(0, 3).Draw(h.t, "crash") == 0 {
			return
		}
	}
}

// move is a rewind or a branch switch: the log goes on under a new id.
func (h *simHost) move() {
	var ids []string
	for _, e := range h.entries {
		if e.kind == "user" || e.kind == "assistant" {
			ids = append(ids, e.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	to := rapid.SampledFrom(ids).Draw(h.t, "target")
	if h.byID[to].kind == "user" {
		to = h.byID[to].parent
	}
	h.begin()
	h.add("leaf", "", to)
}

func newSim(t *rapid.T, b *bundle, key string, ids *int, gateway string) *simHost {
	h := &simHost{t: t, b: b, key: key, gateway: gateway, byID: map[string]*simEntry{}, ids: ids}
	h.begin()
	h.add("model_change", "", "")
	return h
}

var simKeys atomic.Int64

// window are the texts that the service shows.
func (h *simHost) window() []string { return append([]string{}, h.b.shows(h.key)...) }

// once holds the log to every message of the hosts exactly once.
func once(t *rapid.T, b *bundle, key string, hosts ...*simHost) {
	var want, got []string
	for _, h := range hosts {
		for _, e := range h.entries {
			if e.kind == "user" || e.kind == "assistant" {
				want = append(want, e.kind+" "+e.text)
			}
		}
	}
	s, err := b.store.Session(t.Context(), "t", key)
	if err != nil {
		t.Fatal(err)
	}
	evs, err := b.store.Events(t.Context(), "t", s.SID, 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range evs {
		if e.Seq != int64(i+1) {
			t.Fatalf("seq %d is at %d", e.Seq, i)
		}
		if e.Type == events.MessageAppended {
			var m struct{ Role, Content string }
			if err := json.Unmarshal(e.Body, &m); err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Role+" "+m.Content)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("messages in the log (-want +got):\n%s", diff)
	}
}

// A single gateway that syncs before each turn, as hosts do, sees what it shows
// itself, whatever came by commit, by transcript or by both.
func TestOneGatewaySeesItsOwnPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := 0
		key := fmt.Sprint("one", simKeys.Add(1))
		h := newSim(t, b, key, &ids, "g")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"turn", "turn", "turn", "reset", "move"}).Draw(t, "step") {
			case "turn":
				h.drain()
				h.sync(true)
				if diff := cmp.Diff(h.texts(h.path()), h.window()); diff != "" {
					t.Fatalf("before a turn (-host +service):\n%s\n%s", diff, dump(h))
				}
				h.turn()
			case "reset":
				h.drain()
				h.sync(true)
				h.add("reset", "", "")
				if rapid.Bool().Draw(t, "hook") {
					if _, err := b.Reset(t.Context(), h.session(), nil, "new"); err != nil {
						t.Fatal(err)
					}
				}
			case "move":
				h.drain()
				h.sync(true)
				h.move()
			}
		}
		h.drain()
		h.sync(true)
		if diff := cmp.Diff(h.texts(h.path()), h.window()); diff != "" {
			t.Fatalf("at the end (-host +service):\n%s\n%s", diff, dump(h))
		}
		once(t, b, key, h)
		s, err := b.store.Session(t.Context(), "t", key)
		if err != nil {
			t.Fatal(err)
		}
		h.page(0, len(h.entries))
		again, err := b.store.Session(t.Context(), "t", key)
		if err != nil {
			t.Fatal(err)
		}
		if s.Head != again.Head || s.Epoch != again.Epoch {
			t.Fatalf("all of it again moved %d/%d to %d/%d", s.Head, s.Epoch, again.Head, again.Epoch)
		}
	})
}

// Two gateways that sync when they like, stop in between and rewind: nothing is
// lost or doubled, and the window is what each of them shows of its own.
func TestTwoGatewaysShareASession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := 0
		key := fmt.Sprint("two", simKeys.Add(1))
		hosts := []*simHost{newSim(t, b, key, &ids, "g"), newSim(t, b, key, &ids, "h")}
		hidden := map[string]bool{}
		for range rapid.IntRange(1, 16).Draw(t, "steps") {
			h := rapid.SampledFrom(hosts).Draw(t, "host")
			switch rapid.SampledFrom([]string{"turn", "turn", "sync", "drain", "move", "reset"}).Draw(t, "step") {
			case "turn":
				h.turn()
			case "sync":
				h.sync(false)
			case "drain":
				h.drain()
			case "move":
				h.drain()
				h.sync(true) // the host's log is copied as it is
				h.move()
				h.sync(rapid.Bool().Draw(t, "whole"))
			case "reset":
				for _, o := range hosts {
					o.drain()
					o.sync(true)
				}
				other := hosts[0]
				if other == h {
					other = hosts[1]
				}
				for _, id := range other.allMessages() {
					hidden[id] = true
				}
				h.add("reset", "", "")
				if rapid.Bool().Draw(t, "hook") {
					if _, err := b.Reset(t.Context(), h.session(), nil, "new"); err != nil {
						t.Fatal(err)
					}
				}
				h.sync(true)
			}
		}
		var want []string
		for _, h := range hosts {
			h.drain()
			h.sync(true)
			for _, id := range h.path() {
				if !hidden[id] {
					want = append(want, h.byID[id].text)
				}
			}
		}
		got := hosts[0].window()
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Fatalf("window (-hosts +service):\n%s\n%s\n%s", diff, dump(hosts[0]), dump(hosts[1]))
		}
		once(t, b, key, hosts...)
	})
}

func (h *simHost) allMessages() []string {
	var out []string
	for _, e := range h.entries {
		if e.kind == "user" || e.kind == "assistant" {
			out = append(out, e.id)
		}
	}
	return out
}

func dump(h *simHost) string {
	var out strings.Builder
	for _, e := range h.entries {
		fmt.Fprintf(&out, "%s %s ← %s %s %s\n", e.id, e.kind, e.parent, e.target, e.text)
	}
	return out.String()
}
