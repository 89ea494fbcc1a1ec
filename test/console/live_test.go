package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTheLogFollowsWhatComes(t *testing.T) {
	t.Parallel()
	const key = "own:followed"
	theNode.say(t, key, "first words")
	p := newTab(t, theNode.base)
	p.open(hashOf(key, "log", ""))
	p.see("first words")
	p.click("input[type=checkbox]", "")
	p.until("document.querySelector('.mark.live')", "for the stream")
	for i := range 3 {
		theNode.say(t, key, fmt.Sprintf("live words %d", i))
		p.see(fmt.Sprintf("live words %d", i))
	}
	if n := eval[int](p, "document.querySelectorAll('.event').length"); n != 4 {
		t.Errorf("%d rows of 4 events", n)
	}
	p.see("4") // the head on top follows too
	p.until(`[...document.querySelectorAll('.facts dt')].find((e) => e.innerText === 'head').nextSibling.innerText === '4'`, "for the head to follow")
}

func TestTheFeedShowsWhatHappens(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("#/feed?key=own:fed")
	p.until("document.querySelector('.mark.live')", "for the stream")
	theNode.say(t, "own:fed", "one of the feed")
	p.see("one of the feed")
	p.click("button", "Pause")
	theNode.say(t, "own:fed", "while it is paused")
	p.see("Go on (")
	p.until("Number(document.querySelector('[aria-pressed=true]').innerText.match(/\\d+/)[0]) > 0", "for news to wait")
	if strings.Contains(p.text(), "while it is paused") {
		t.Error("a paused feed moves")
	}
	p.click("button", "Go on")
	p.see("while it is paused")
	if first := eval[string](p, "document.querySelector('.event').innerText"); !strings.Contains(first, "while it is paused") {
		t.Errorf("the newest is not on top: %s", first)
	}
}

// TestAStreamResumes: with the key, behind the last event, and in whole
// characters and lines however the bytes come.
func TestAStreamResumes(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("#/node")
	p.see("ready")
	got := await(p, `(async () => {
		sessionStorage.setItem('engined.key', 'ek_test')
		const { follow } = await import('/console/lib/stream.js')
		const bytes = new TextEncoder().encode(': hi\nretry: 1000\n\nid: 7\ndata: {"a":\ndata:  "é🔥"}\n\nid: 8\ndata: {"a":"half')
		const asked = [], events = [], states = []
		const real = window.fetch
		window.fetch = async (url, init) => {
			asked.push([url, init.headers.Authorization ?? '', init.headers['Last-Event-ID'] ?? '', init.credentials])
			if (asked.length === 2) throw new TypeError('away')
			if (asked.length === 4) return new Response('{"title":"Gone","detail":"of another era"}', { status: 410 })
			return new Response(new ReadableStream({ async start(c) {
				for (let i = 0; i < bytes.length; i += 3) { c.enqueue(bytes.subarray(i, i + 3)); await 0 }
				c.close()
			} }))
		}
		const realTimeout = window.setTimeout
		window.setTimeout = (f) => realTimeout(f, 1)
		await follow('/v1/x', { lastId: 5, signal: new AbortController().signal, onState: (s) => states.push(s === 'live' ? s : s.title), onEvent: (e, id) => events.push([id, e.a]) })
		window.fetch = real; window.setTimeout = realTimeout
		sessionStorage.removeItem('engined.key')
		return JSON.stringify({ asked, events, states })
	})()`)
	var seen struct {
		Asked, Events [][]any
		States        []string
	}
	if err := json.Unmarshal([]byte(got), &seen); err != nil {
		t.Fatal(err, got)
	}
	if want := `[[/v1/x Bearer ek_test 5 omit] [/v1/x Bearer ek_test 7 omit] [/v1/x Bearer ek_test 7 omit] [/v1/x Bearer ek_test 7 omit]]`; fmt.Sprint(seen.Asked) != want {
		t.Errorf("asked %v\nwant  %s", seen.Asked, want)
	}
	if fmt.Sprint(seen.Events) != "[[7 é🔥] [7 é🔥]]" || fmt.Sprint(seen.States) != "[live The node does not answer live Gone]" {
		t.Errorf("events %v, states %v", seen.Events, seen.States)
	}
}
