package console

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// protected starts a second node on the first one's database that demands keys.
func protected(t *testing.T) *node {
	t.Helper()
	var said lockedBuffer
	n := &node{key: "admin-key", process: exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--database-url", theNode.database, "--nats-url", "nats://127.0.0.1:1",
		"--keys", "admin-key=acme,analyst-key=acme=analyst")}
	n.process.Stdout, n.process.Stderr = &said, &said
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	address := regexp.MustCompile(`http://[0-9.:]+`)
	for end := time.Now().Add(time.Minute); n.base == ""; time.Sleep(100 * time.Millisecond) {
		n.base = address.FindString(said.String())
		if time.Now().After(end) {
			t.Fatal("the node does not start:\n" + said.String())
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if answer, err := http.Get(n.base + "/healthz"); err == nil {
			answer.Body.Close()
			return n
		}
		if time.Now().After(end) {
			t.Fatal("the node does not answer:\n" + said.String())
		}
	}
}

func TestANodeWithKeysAsksForOne(t *testing.T) {
	t.Parallel()
	n := protected(t)
	n.say(t, "secret:session", "only for acme")
	p := newTab(t, n.base)
	p.expect("401", "403")
	link := "#/s/secret%3Asession/log"
	p.open(link)
	p.see("This node asks for an API key")
	if strings.Contains(p.text(), "only for acme") {
		t.Fatal("shown without a key")
	}
	p.fill("input[name=key]", "no-such-key")
	p.click("button", "Go on")
	p.until("document.querySelector('.prompt .failure')", "for the refusal")
	p.fill("input[name=key]", " analyst-key\u200b\n")
	p.click("button", "Go on")
	p.see("only for acme") // the link was kept
	p.click(".tabs a", "Compaction")
	p.see("analyst", "this call is for") // the API's own words on the scope
	p.click("button", "Erase…")
	p.fill("dialog input", "secret:session")
	p.click("dialog button", "Erase for good")
	p.until("document.querySelector('dialog .failure')?.innerText.includes('gateway')", "for the refusal")
	p.click("dialog button", "Cancel")
	p.click("nav a", "Sessions")
	p.see("secret:session")
	p.click("nav a", "Feed")
	p.until("document.querySelector('.mark.live')", "for the stream, which has the key too")
	p.click("nav a", "Node")
	p.see("nats", "away", "compactions wait", "ready")

	if kept := eval[string](p, "JSON.stringify([document.cookie, localStorage.length, Object.keys(sessionStorage)])"); kept != `["",0,["engined.key"]]` {
		t.Errorf("kept in the browser: %s", kept)
	}
	if strings.Contains(eval[string](p, "location.href"), "analyst-key") {
		t.Error("the key is in the link")
	}
	other := newTab(t, n.base)
	other.expect("401")
	other.open(link)
	other.see("This node asks for an API key")

	p.click("button", "Forget key")
	p.see("This node asks for an API key")
	if eval[int](p, "sessionStorage.length") != 0 {
		t.Error("a forgotten key is kept")
	}
}

func TestByKeyboardAlone(t *testing.T) {
	t.Parallel()
	p := newTab(t, theNode.base)
	p.open("#/sessions?key=" + big)
	p.see(big)
	focused := "(document.activeElement.innerText || document.activeElement.placeholder || document.activeElement.tagName).trim()"
	press := func(keys string) { p.t.Helper(); p.run(chromedp.KeyEvent(keys)) }
	visible := func() bool {
		return eval[bool](p, "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 })()")
	}
	for _, want := range []string{"Skip to the content", "engined", "Sessions", "Search", "Feed", "Node", "Filter by key", big} {
		press(kb.Tab)
		if got := eval[string](p, focused); got != want {
			t.Fatalf("the focus is on %q, want %q", got, want)
		}
		if !visible() {
			t.Errorf("the focus on %q can't be seen", want)
		}
	}
	press(kb.Enter)
	p.see("As of seq")
	eval[bool](p, "document.querySelector('.tabs a:last-child').focus() === undefined")
	press(kb.Enter)
	p.until("[...document.querySelectorAll('button')].some((b) => b.innerText === 'Compact…' && !b.disabled)", "for the compaction")
	eval[bool](p, "[...document.querySelectorAll('button')].find((b) => b.innerText === 'Compact…').focus() === undefined")
	press(kb.Enter)
	p.until("document.querySelector('dialog[open]')?.contains(document.activeElement)", "for the focus in the dialog")
	press(kb.Escape)
	p.until("!document.querySelector('dialog')", "for the dialog to close")
	p.until("document.activeElement.innerText === 'Compact…'", "for the focus to be back")
}
