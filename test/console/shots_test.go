package console

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestScreenshots writes pictures of every view, light and dark, wide and narrow,
// for people to look at.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots DIR writes screenshots")
	}
	const shown, fork, hostile = "agent:main:discord:channel:42", "agent:main:discord:channel:42:try", "shop:<img src=x onerror=alert(1)>\u202e"
	if err := theNode.engined("import", "--session", shown, theNode.demo); err != nil {
		t.Fatal(err)
	}
	theNode.say(t, shown, "And what did we decide about the theme files?")
	theNode.call(t, sessionPath(shown)+"/compact", `{"force":true,"tokenBudget":32000}`)
	theNode.call(t, sessionPath(shown)+"/after-turn", `{"tokenBudget":32000,"messages":[],"prePromptMessageCount":0}`)
	theNode.call(t, sessionPath(shown)+"/fork", `{"newSessionKey":`+js(fork)+`}`)
	theNode.say(t, hostile, nasty)
	open := func(selector, text string) func(*tab) { return func(p *tab) { p.click(selector, text) } }
	for name, view := range map[string]struct {
		hash string
		then func(*tab)
	}{
		"sessions": {hash: "#/sessions"}, "no-sessions": {hash: "#/sessions?key=nothing-like-this"}, "missing": {hash: "#/s/no-such/window"},
		"window": {hash: hashOf(shown, "window", "")}, "window-then": {hash: hashOf(big, "window", "?seq=400&budget=20000")}, "window-over": {hash: hashOf(big, "window", "?budget=10")},
		"window-open": {hash: hashOf(shown, "window", ""), then: open(".wrow .opener", "summary")},
		"compare":     {hash: hashOf(shown, "compare", "")}, "log": {hash: hashOf(big, "log", "")}, "log-seq": {hash: hashOf(big, "log", "?seq=40")},
		"log-bytes": {hash: hashOf(big, "log", "?seq=31"), then: open("button", "Bytes")},
		"steps":     {hash: hashOf(shown, "log", "")}, "hostile": {hash: hashOf(hostile, "log", "?seq=1")},
		"summaries": {hash: hashOf(shown, "summaries", ""), then: func(p *tab) {
			p.click(".branch .opener", "live")
			p.click(".branchbody > button", "")
		}},
		"compaction": {hash: hashOf(big, "compaction", "")}, "undo": {hash: hashOf(shown, "compaction", ""), then: open("button", "Undo")},
		"erase":  {hash: hashOf(shown, "log", ""), then: open("button", "Erase")},
		"search": {hash: "#/search?q=theme&sort=recent"}, "no-hits": {hash: "#/search?q=zzzzqqq"}, "search-wrong": {hash: "#/search?q=(&regex=true"},
		"feed": {hash: "#/feed", then: open(".opener", "")}, "node": {hash: "#/node"},
		"key": {hash: "#/sessions", then: func(p *tab) {
			await(p, `import('/console/lib/key.js').then((m) => { m.setKey('ek_wrong'); m.refuse({ title: 'Unauthorized', detail: 'no such API key' }); return '' })`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, width := range []int64{1280, 390} {
				for _, scheme := range []string{"light", "dark"} {
					p := newTab(t, theNode.base)
					p.expect("404", "422", "401")
					p.look(width, 900, scheme == "dark")
					p.open(view.hash)
					p.until("document.querySelector('main h1') && !document.querySelector('.waiting')", "for "+name)
					if view.then != nil {
						view.then(p)
					}
					time.Sleep(400 * time.Millisecond) // what fades has faded
					p.shoot(fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
				}
			}
		})
	}
}

func (p *tab) shoot(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
