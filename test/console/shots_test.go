package console

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestScreenshots writes pictures of every view for people to look at.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots DIR writes screenshots")
	}
	prepared := "demo:shown"
	theNode.call(t, sessionPath(big)+"/fork", `{"newSessionKey":`+js(prepared)+`}`)
	theNode.call(t, sessionPath(big)+"/compact", `{"force":true,"tokenBudget":48000}`)
	key := url.QueryEscape(big)
	views := map[string]string{
		"sessions": "#/sessions", "sessions-empty": "#/sessions?key=nothing-like-this",
		"window": "#/s/" + key + "/window", "window-small": "#/s/" + key + "/window?budget=20000", "window-over": "#/s/" + key + "/window?budget=10",
		"compare": "#/s/" + key + "/compare", "log": "#/s/" + key + "/log", "log-seq": "#/s/" + key + "/log?seq=40", "log-epochs": "#/s/" + key + "/log?show=epochs",
		"summaries": "#/s/" + key + "/summaries", "compaction": "#/s/" + key + "/compaction", "fork": "#/s/" + url.QueryEscape(prepared) + "/window",
		"search": "#/search?q=theme", "search-none": "#/search?q=zzzzqqq", "feed": "#/feed", "node": "#/node", "missing": "#/s/no-such/window",
	}
	for name, hash := range views {
		for _, width := range []int64{1280, 390} {
			for _, dark := range []bool{false, true} {
				p := newTab(t, theNode.base)
				p.expect("404")
				p.look(width, 900, dark)
				p.open(hash)
				p.until("document.querySelector('main h1') && !document.querySelector('.waiting')", "for "+name)
				time.Sleep(300 * time.Millisecond)
				p.shoot(fmt.Sprintf("%s-%d-%t.png", name, width, dark))
			}
		}
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
