package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a view may take on a busy machine.
const patience = 20 * time.Second

// findBrowser is the path of a Chromium, "" where there is none.
func findBrowser() string {
	for _, name := range []string{os.Getenv("ENGINED_BROWSER"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startBrowser runs one for all tests; each page of it is a context of its own.
func startBrowser(path, profile string) (context.Context, context.CancelFunc, error) {
	ctx, stopProcess := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)...)
	ctx, stop := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		stopProcess()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return ctx, func() { stop(); stopProcess() }, nil
}

// tab is a page in a browser context without history, cookies or storage.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu     sync.Mutex
	faults []string
	// expected are parts of what the browser itself notes of answers that a test
	// wants to be refused.
	expected []string
}

func newTab(t *testing.T, base string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(theBrowser, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	p := &tab{t: t, ctx: ctx, base: base}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	p.run(chromedp.EmulateViewport(1280, 900))
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(p.ctx, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(p.ctx, runtime.Enable, cdp.Empty{}); return err },
	} {
		if err := enable(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(p.assertClean)
	return p
}

// listen notes whatever a page without faults does not do.
func (p *tab) listen(ev any) {
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		said := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
		p.fault("exception: " + said)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var said []string
			for _, a := range e.Args {
				said = append(said, string(a.Value)+a.Description)
			}
			p.fault("console: " + strings.Join(said, " "))
		}
	case *log.EventEntryAdded: // violations of the policy too
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning || e.Entry.Source == log.EntrySourceSecurity {
			p.fault(fmt.Sprintf("browser: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, p.base+"/") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "about:") && !strings.HasPrefix(u, "blob:"+p.base) {
			p.fault("asks elsewhere: " + u)
		}
	case *page.EventJavascriptDialogOpening:
		p.fault("dialog: " + e.Message)
	}
}

func (p *tab) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

func (p *tab) expect(parts ...string) { p.expected = append(p.expected, parts...) }

func (p *tab) assertClean() {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, f := range p.faults {
		for _, part := range p.expected {
			if strings.Contains(f, part) {
				continue next
			}
		}
		p.t.Errorf("the page is not clean: %s", f)
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("browser: %v\n%s", err, p.text())
	}
}

// eval runs an expression in the page.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		p.t.Fatalf("browser: %v\n%s\n%s", err, js, p.text())
	}
	return out
}

// await is what a promise of a string comes to.
func await(p *tab, js string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("browser: %v\n%s", err, js)
	}
	return out
}

// open goes to a hash, as a shared link does: in a page that was just loaded.
func (p *tab) open(hash string) {
	p.t.Helper()
	p.run(chromedp.Navigate("about:blank"), chromedp.Navigate(p.base+"/console/"+hash))
}

// text is what is to be read on the page.
func (p *tab) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
	if err != nil {
		return err.Error()
	}
	return s[:min(len(s), 1500)]
}

// see waits until all of the texts are on the page.
func (p *tab) see(texts ...string) {
	p.t.Helper()
	for _, want := range texts {
		p.until(fmt.Sprintf("document.body.innerText.includes(%s)", js(want)), "to read "+want)
	}
}

// until waits for an expression to be true.
func (p *tab) until(expression, what string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("waited in vain %s (%v); the page says:\n%s", what, err, p.text())
		}
	}
}

// click clicks the first visible element of a selector that holds a text.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find((e) => e.innerText.includes(%s) && e.getClientRects().length && !e.disabled)`, js(selector), js(text))
	p.until(find, "to click "+selector+" "+text)
	eval[bool](p, find+".click() === undefined")
}

// fill types into a field as a person does: the page hears of each change.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s)", js(selector)), "for "+selector)
	eval[bool](p, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s)
		Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), 'value').set.call(e, %s)
		e.dispatchEvent(new Event('input', { bubbles: true }))
		e.dispatchEvent(new Event('change', { bubbles: true }))
		return true
	})()`, js(selector), js(text)))
}

func (p *tab) look(width, height int64, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	var device []chromedp.EmulateViewportOption
	if width < 600 {
		device = append(device, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.run(chromedp.EmulateViewport(width, height, device...))
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		p.t.Fatal(err)
	}
}
