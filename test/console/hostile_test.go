package console

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const nasty = `<script>document.title='run'</script><img src=x onerror="document.title='run'"><svg onload=alert(1)>` +
	`</bdi></div></html> {{constructor.constructor('alert(1)')()}} javascript:alert(1) ` + "\u202egnp.exe\u202c \u2066x \u0007\u001b[31m\u0000 \u200bz\u2028 \U000e0041\U000e0042"

// TestHostileContentIsHarmless: in the key, the message, the tool, the ids and
// the errors, on every view.
func TestHostileContentIsHarmless(t *testing.T) {
	t.Parallel()
	key := "own:<img src=x onerror=document.title='run'>\u202e/?#%2F&\u05d0 " + strings.Repeat("long-", 40)
	message := func(content string) string {
		return `{"messages":[{"role":"user","content":` + js(content) + `},
			{"role":"assistant","content":[{"type":"thinking","thinking":` + js(nasty) + `},{"type":"text","text":` + js(nasty) + `},{"type":"toolCall","id":` + js(nasty) + `,"name":` + js(nasty) + `,"arguments":{"x":` + js(nasty) + `}}]},
			{"role":"toolResult","toolCallId":` + js(nasty) + `,"toolName":` + js(nasty) + `,"content":[{"type":"text","text":"\ud800 lone \udc00 ` + "\U0001f525" + `"},{"type":` + js(nasty) + `}]},
			{"role":` + js(nasty) + `,"content":` + js(nasty) + `},{"role":"assistant","content":[[[]],7,{"type":"text"}]},{"role":"custom","content":null},
			{"__proto__":{"role":"x"},"constructor":"y","role":"user","content":"findme ` + `<i>"}]}`
	}
	theNode.call(t, sessionPath(key)+"/ingest-batch", message(nasty))
	p := newTab(t, theNode.base)
	segment := strings.ReplaceAll(pathEscape(key), "+", "%20")
	for _, hash := range []string{"#/sessions", "#/s/" + segment + "/window", "#/s/" + segment + "/log", "#/s/" + segment + "/compare", "#/s/" + segment + "/summaries", "#/s/" + segment + "/compaction", "#/search?q=findme", "#/feed"} {
		for _, width := range []int64{1280, 390} {
			p.look(width, 900, false)
			p.open(hash)
			p.until("document.querySelector('main h1') && !document.querySelector('.waiting')", "for "+hash)
			if strings.Contains(hash, "/log") {
				p.until("document.querySelectorAll('.event').length === 7", "for the log")
			}
			eval[bool](p, "document.querySelectorAll('.opener').forEach((b) => b.click()) === undefined")
			time.Sleep(100 * time.Millisecond)
			p.sound()
			if title := eval[string](p, "document.title"); title == "run" {
				t.Fatalf("%s ran what a session said", hash)
			}
			if acting := eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u001b\u2028\u200b]|\p{Surrogate}|[\u{e0000}-\u{e007f}]/u.test(document.body.textContent + document.title)`); acting {
				t.Errorf("%s shows characters that act", hash)
			}
		}
	}
	p.open("#/s/" + segment + "/log")
	p.click(".opener", "toolResult")
	p.see("‹U+D800› lone ‹U+DC00› 🔥", "‹U+202E›gnp.exe", "␛[31m", "‹U+E0041›")
}

// TestHugeMessagesAreBounded: a line of 5 MB costs its beginning, until all of it
// is wanted.
func TestHugeMessagesAreBounded(t *testing.T) {
	t.Parallel()
	const key, size = "own:huge", 5 << 20
	theNode.say(t, key, strings.Repeat("x", size), strings.Repeat("\u202e", 400_000), strings.Repeat("a\n", 500_000), "the end")
	p := newTab(t, theNode.base)
	p.open(hashOf(key, "log", ""))
	p.until("document.querySelectorAll('.event').length === 4", "for the log")
	shown := "document.querySelector('main').textContent.length"
	if n := eval[int](p, shown); n > 10_000 {
		t.Errorf("%d characters are on the page of four closed rows", n)
	}
	p.click(".opener", "xxx")
	p.see("Show all (5.0 MiB)")
	if n := eval[int](p, shown); n > 20_000 {
		t.Errorf("%d characters are on the page", n)
	}
	began := time.Now()
	p.click("button", "Show all (5.0 MiB)")
	p.until(shown+fmt.Sprintf(" > %d", size), "for all of it")
	height := eval[float64](p, "document.querySelector('.said.long').getBoundingClientRect().height")
	t.Logf("5 MiB are shown after %v, %v px high", time.Since(began).Round(time.Millisecond), height)
	if height > 900 {
		t.Errorf("a long text is %v px high", height)
	}
	p.click("button", "Show its beginning")
	p.until(shown+" < 20000", "for its beginning")
	p.click("button", "Bytes")
	p.see("as stored")
	p.sound()
	for _, view := range []string{"window", "compare"} {
		p.open(hashOf(key, view, ""))
		p.until("document.querySelector('.event')", "for "+view)
		p.sound()
	}
}

// TestALongLogIsPaged: a hundred thousand events are never loaded at once.
func TestALongLogIsPaged(t *testing.T) {
	t.Parallel()
	const key, total, batch = "own:long", 100_000, 10_000
	for from := 1; from <= total; from += batch {
		var b strings.Builder
		for i := from; i < from+batch; i++ {
			role := "assistant"
			if i == 3 || i == 99_000 {
				role = "user"
			}
			fmt.Fprintf(&b, `,{"role":%q,"content":"event %d"}`, role, i)
		}
		theNode.call(t, sessionPath(key)+"/ingest-batch", `{"messages":[`+b.String()[1:]+`]}`)
	}
	p := newTab(t, theNode.base)
	p.open(hashOf(key, "log", ""))
	p.see("99,951–100,000 of 100,000", "event 100000")
	p.click("a", "Older")
	p.see("99,901–99,950 of 100,000", "event 99901")
	p.click("a", "First")
	p.see("1–50 of 100,000", "event 50")
	p.click("a", "Newer")
	p.see("51–100 of 100,000")
	p.fill(".goto input", "50000")
	p.click("button", "Go")
	p.until("document.querySelector('.event.marked')?.dataset.seq === '50000'", "for the middle")
	if n := eval[int](p, "document.querySelectorAll('.event').length"); n > 50 {
		t.Errorf("%d rows on a page", n)
	}
	if loaded := eval[float64](p, "performance.getEntriesByType('resource').filter((e) => e.name.includes('/events')).reduce((n, e) => n + e.decodedBodySize, 0)"); loaded > 300_000 {
		t.Errorf("%v bytes of events were loaded for five pages", loaded)
	}
	p.open(hashOf(key, "log", "?show=user"))
	p.see("event 99000")
	p.click("a", "Older") // it gives up after ten thousand, and says where
	p.see("Nothing of this kind from seq")
	p.open(hashOf(key, "log", "?show=user&at=1"))
	p.see("event 3", "1–10,000 of 100,000")

	p.open(hashOf(key, "window", ""))
	p.until("document.querySelector('.wrow')", "for the window")
	if n := eval[int](p, "document.querySelectorAll('.wrow').length"); n > 200 {
		t.Errorf("%d rows of a window at once", n)
	}
	p.click("button", "Show 200 more")
	p.until("document.querySelectorAll('.wrow').length === 400", "for more rows")
}
