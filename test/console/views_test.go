package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func hashOf(key, tab, query string) string {
	return "#/s/" + url.PathEscape(key) + "/" + tab + query
}

// TestEveryViewByItsLink: a link that someone sent shows the view, at any width.
func TestEveryViewByItsLink(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]struct {
		hash string
		see  []string
	}{
		"none":       {"", []string{"Sessions", big}},
		"sessions":   {"#/sessions?key=AGENTS", []string{agents}},
		"no session": {"#/sessions?key=nothing-like-it", []string{"No session has this in its key."}},
		"window":     {hashOf(big, "window", "?seq=300&budget=9000"), []string{"as of seq", "of 9,000 tokens", "among the newest messages that fit", "older than what fits the budget"}},
		"over":       {hashOf(big, "window", "?budget=5"), []string{"over budget", "The smallest valid window needs"}},
		"compare":    {hashOf(big, "compare", "?a=200&b=300&budget=9000"), []string{"a: as of seq 200", "b: as of seq 300", "left", "came"}},
		"log":        {hashOf(big, "log", ""), []string{"865–914 of 914", "older", "toolresult"}},
		"log at":     {hashOf(big, "log", "?at=101"), []string{"101–150 of 914", "newer"}},
		"log upto":   {hashOf(big, "log", "?upto=30"), []string{"1–30 of 914"}},
		"log role":   {hashOf(big, "log", "?show=user&upto=200"), []string{"only user"}},
		"log none":   {hashOf(big, "log", "?show=lineage"), []string{"Nothing of this kind in this log."}},
		"summaries":  {hashOf(agents, "summaries", ""), []string{"nothing of this session has been compacted"}},
		"compaction": {hashOf(big, "compaction", ""), []string{"What a compaction would do now", "at most", "Still the first"}},
		"search":     {"#/search?q=theme&kind=toolCall&sort=recent&sessionKey=demo:big", []string{"theme", big, "call"}},
		"not found":  {"#/search?q=zzqqzzqq", []string{"Nothing found."}},
		"feed":       {"#/feed", []string{"live", "now"}},
		"node":       {"#/node", []string{"ready", "postgres", "lossless", "the built-in extractive rule writes"}},
		"no view":    {"#/nowhere/at/all", []string{"No such view"}},
		"bad escape": {"#/s/%E0%A4%A/window", []string{"No such session"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t, theNode.base)
			if name == "bad escape" {
				p.expect("404")
			}
			for _, width := range []int64{1280, 390} {
				p.look(width, 900, width == 390)
				p.open(view.hash)
				p.until("!document.querySelector('.waiting')", "for an answer")
				for _, want := range view.see {
					p.until("document.body.innerText.toLowerCase().includes("+js(strings.ToLower(want))+") || [...document.querySelectorAll('option:checked')].some((o) => o.text.includes("+js(want)+"))", "to read "+want)
				}
				p.sound()
			}
		})
	}
}

// sound is what holds on every view: nothing is wider than the page, everything
// that can be used has a name, and headings begin with one h1.
func (p *tab) sound() {
	p.t.Helper()
	for what, js := range map[string]string{
		"wider than the page": `(() => {
			const most = document.documentElement.clientWidth
			if (document.documentElement.scrollWidth <= most) return []
			return [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > most + 1 && !e.closest('.tablewrap, .said')).map((e) => e.outerHTML.slice(0, 120))
		})()`,
		"without a name": `[...document.querySelectorAll('input, select, textarea, button, a, img')].filter((e) =>
			!(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.hasAttribute('alt') || e.title)).map((e) => e.outerHTML.slice(0, 120))`,
		"twice the same id":      `[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`,
		"markup out of contents": `[...document.querySelectorAll('main script, main iframe, main style, main object, main embed, main form[action], main [onerror], main [onclick], main svg')].map((e) => e.outerHTML.slice(0, 120))`,
	} {
		if found := eval[[]string](p, js); len(found) > 0 {
			p.t.Errorf("%s: %q", what, found)
		}
	}
	if n := eval[int](p, "document.querySelectorAll('h1').length"); n != 1 {
		p.t.Errorf("%d first headings", n)
	}
}

// TestFromTheListToTheBytes goes the way of somebody who looks for a message.
func TestFromTheListToTheBytes(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("")
	p.fill("input[type=search]", "agents")
	p.until("!document.body.innerText.includes("+js(big)+")", "for the filter")
	p.until("location.hash === '#/sessions?key=agents'", "for the filter in the link")
	p.click("td a", agents)
	p.see("As of seq", "31")
	for _, tab := range []string{"Compare", "Summaries", "Compaction", "Log"} {
		p.click(".tabs a", tab)
		p.until("document.querySelector('.tabs [aria-current]').innerText === "+js(tab), "for the tab "+tab)
	}
	p.until("document.querySelectorAll('.event').length === 31", "for the log")
	p.click(".opener", "user")
	p.click("button", "Bytes")
	p.see("as stored", "Copy", "Save")
	seq := eval[string](p, "document.querySelector('.raw').closest('.event').dataset.seq")
	shown := eval[string](p, "document.querySelector('.raw .said').innerText")
	want := theNode.rawMessage(t, agents, seq)
	if !strings.HasPrefix(strings.TrimSuffix(shown, "…"), want[:min(len(want), 200)]) {
		t.Errorf("the bytes of %s are %.200s, shown as %.200s", seq, want, shown)
	}
	p.run(chromedp.NavigateBack())
	p.until("document.querySelector('.tabs [aria-current]').innerText === 'Compaction'", "to be back")
}

// TestBytesAreCutOutVerbatim: what a parser would change comes through.
func TestBytesAreCutOutVerbatim(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	const message = `{"role":"user", "z":1, "a":1.000, "big":12345678901234567890, "dup":1,"dup":2, "e":"\u0041\/\ud800","message":{"data":"]}"},  "content":"\"}]{[ é \u0000"}`
	theNode.call(t, sessionPath("verbatim")+"/ingest", `{"message":`+message+`}`)
	p.open("#/node")
	got := await(p, `import('/console/lib/raw.js').then((m) => m.rawMessage('verbatim', 1)).then((b) => new TextDecoder().decode(b))`)
	if got != message {
		t.Errorf("sent %s\n got %s", message, got)
	}
}

// TestTimeTravelByHand moves the slider and looks at what was.
func TestTimeTravelByHand(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open(hashOf(big, "window", ""))
	p.see("now")
	total := "document.querySelector('.total b').innerText"
	p.until("document.querySelector('.total b')", "for the window")
	before := eval[string](p, total)
	p.fill("input[type=range]", "40")
	p.until(total+" !== "+js(before), "for another window")
	p.until("location.hash.includes('seq=40')", "for the seq in the link")
	p.until("[...document.querySelectorAll('.wrow')].at(-1).dataset.seq === '40'", "for the message of then at the end")
	p.fill("input[placeholder='its own']", "2000")
	p.see("of 2,000 tokens", "Left out")
	p.fill("input[type=number]", "914")
	p.until("!location.hash.includes('seq=')", "to be at the head again")
	p.until("[...document.querySelectorAll('.wrow')].at(-1).dataset.seq === '914'", "for the newest message at the end")
	// Its row opens with the keyboard's key too: it is a button.
	p.click(".wrow .opener", "")
	p.until("document.querySelector('.wrow .opener').ariaExpanded === 'true' && document.querySelector('.wrow .eventbody')", "for the message")
}

func TestASearchLeadsIntoTheLog(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("#/search")
	p.fill("input[name=q]", "getEditorTheme")
	p.click("button", "Search")
	p.until("document.querySelectorAll('.hit mark').length > 0", "for hits with marks")
	if marks := eval[string](p, "document.querySelector('.hit mark').innerText"); !strings.EqualFold(marks, "getEditorTheme") {
		t.Errorf("marked: %q", marks)
	}
	seq := strings.TrimPrefix(eval[string](p, "document.querySelector('.hithead .num').innerText"), "#")
	p.click(".hithead a", "#"+seq)
	p.until("document.querySelector('.event.marked')?.dataset.seq === "+js(seq), "for the event of the hit")
	p.until(`(() => { const r = document.querySelector('.event.marked').getBoundingClientRect(); return r.top < innerHeight && r.bottom > 0 })()`, "for it to be in view")
	p.until("document.querySelector('.event.marked').innerText.includes('getEditorTheme')", "for it to be open")
}

// TestAForkNamesWhatItInherited: seqs of its own and its parent's are told apart,
// and every link leads to the log that has the event.
func TestAForkNamesWhatItInherited(t *testing.T) {
	t.Parallel()
	const parent, child = "own:parent", "own:child"
	if err := theNode.engined("import", "--session", parent, "../transcripts/testdata/pi/large-session-start.jsonl"); err != nil {
		t.Fatal(err)
	}
	theNode.call(t, sessionPath(parent)+"/fork", `{"newSessionKey":`+js(child)+`}`)
	long := strings.Repeat("some more words of the child ", 3000)
	for range 4 {
		theNode.call(t, sessionPath(child)+"/ingest-batch", `{"messages":[{"role":"user","content":`+js(long)+`},{"role":"assistant","content":"yes"}]}`)
	}
	theNode.call(t, sessionPath(child)+"/compact", `{"force":true,"tokenBudget":40000}`)
	p := newTab(t, theNode.base)
	p.open(hashOf(child, "compare", ""))
	p.see("now in summary", "stands for inherited 1–")
	p.click(".event.op-came .seq", "")
	p.until("document.querySelector('.branch.marked')", "for the summary in the tree")
	for range 3 { // down to the messages
		p.until("[...document.querySelectorAll('.branchbody > button')].length", "for a branch")
		if eval[bool](p, "Boolean(document.querySelector('.coveredrow'))") {
			break
		}
		eval[bool](p, "[...document.querySelectorAll('.branchbody > button[aria-expanded=false]')].at(-1)?.click() === undefined")
		p.until("document.querySelector('.coveredrow') || document.querySelectorAll('.branch .branch').length", "for what is below")
		eval[bool](p, "[...document.querySelectorAll('.branch .branch .opener[aria-expanded=false]')].slice(0, 1).forEach((b) => b.click()) === undefined")
	}
	p.until("document.querySelector('.coveredrow .seq')", "for a message")
	href := eval[string](p, "document.querySelector('.coveredrow .seq').getAttribute('href')")
	words := eval[string](p, "document.querySelector('.coveredrow .said').innerText.replace(/\\s+/g, ' ').trim().slice(0, 20)")
	if !strings.Contains(href, url.QueryEscape(parent)) {
		t.Errorf("the first message is the parent's, and its link is %s", href)
	}
	p.open(href)
	p.until("document.querySelector('.event.marked')?.innerText.replace(/\\s+/g, ' ').includes("+js(words)+")", "for the same message in the log")
	p.open(hashOf(child, "compaction", ""))
	p.see("Epochs")
	p.sound()
}
