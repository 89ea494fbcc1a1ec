package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/console"
)

const prefix = "/console/"

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := console.Handler(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:7420/", http.NoBody)
	r.URL.Path = path // as it stands: a client may send anything
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// sources are the files of the console by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir("static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		files[strings.TrimPrefix(filepath.ToSlash(name), "static/")] = string(raw)
		return err
	})
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	return files
}

// scripts are those written here; vendor/ is someone else's.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	ours := make(map[string]string)
	for name, text := range sources(t) {
		if path.Ext(name) == ".js" && !strings.HasPrefix(name, "vendor/") {
			ours[name] = text
		}
	}
	return ours
}

func TestFilesAreServedWithTheirHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t)
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml", ".md": "text/plain; charset=utf-8", "": "text/plain; charset=utf-8",
	}
	tags := make(map[string]string)
	for name, text := range sources(t) {
		w := ask(h, http.MethodGet, prefix+name)
		if w.Code != http.StatusOK || w.Body.String() != text {
			t.Errorf("%s: %d, %d bytes of %d", name, w.Code, w.Body.Len(), len(text))
		}
		for header, want := range map[string]string{
			"Content-Type":           types[path.Ext(name)],
			"Cache-Control":          "no-cache",
			"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":        "no-referrer",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", name)
		}
		tag := w.Header().Get("ETag")
		if other, twice := tags[tag]; tag == "" || twice && text != sources(t)[other] {
			t.Errorf("%s: ETag %q, as %s", name, tag, other)
		}
		tags[tag] = name
		if w := ask(h, http.MethodGet, prefix+name, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("%s, known already: %d, %d bytes", name, w.Code, w.Body.Len())
		}
		if w := ask(h, http.MethodHead, prefix+name); w.Code != http.StatusOK || w.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d, %d bytes", name, w.Code, w.Body.Len())
		}
	}
	if w := ask(h, http.MethodGet, prefix); !strings.Contains(w.Body.String(), `<div id="app">`) {
		t.Errorf("%s is %.80s", prefix, w.Body)
	}
}

func TestNothingElseIsServed(t *testing.T) {
	t.Parallel()
	h := handler(t)
	for _, name := range []string{
		"nothing", "../console.go", "./index.html", "static/index.html", "lib", "lib/", "lib/../index.html", "//index.html", "index.html/", "%2e%2e/console.go", "index.html\x00",
	} {
		w := ask(h, http.MethodGet, prefix+name)
		if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "package") {
			t.Errorf("%q: %d", name, w.Code)
		}
		if w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%q: headers %v", name, w.Header())
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "BREW"} {
		if w := ask(h, method, prefix); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// TestNoOtherHostIsNamed: a console that loads or calls anything of someone
// else's would tell them who looks at what.
func TestNoOtherHostIsNamed(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`(?i)(?:[a-z]+:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'<>)]*`)
	for name, text := range sources(t) {
		if path.Ext(name) == "" || path.Ext(name) == ".md" {
			continue // licences
		}
		for _, found := range foreign.FindAllString(text, -1) {
			if found != "http://www.w3.org/2000/svg" { // a name, not a place
				t.Errorf("%s names %s", name, found)
			}
		}
	}
}

// TestContentStaysText: what sessions say reaches the page as text nodes and
// attributes only, and the key reaches no other store than the tab's.
func TestContentStaysText(t *testing.T) {
	t.Parallel()
	risky := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerously|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|new Function|javascript:|localStorage|document\.cookie|indexedDB|setTimeout\(['"]|import\(`)
	for name, text := range scripts(t) {
		for _, found := range risky.FindAllString(text, -1) {
			t.Errorf("%s uses %s", name, found)
		}
		if strings.Contains(text, "sessionStorage.") && name != "lib/key.js" {
			t.Errorf("%s reaches for the key", name)
		}
	}
	inline := regexp.MustCompile(`(?i)<style|\son[a-z]+=|\sstyle=|<script(?:\s[^>]*)?>[^<]`)
	if found := inline.FindString(sources(t)["index.html"]); found != "" {
		t.Errorf("index.html has %q, which the policy forbids", found)
	}
}

// TestModulesHoldTogether: every import names a file and a thing that it
// exports, and every file is imported.
func TestModulesHoldTogether(t *testing.T) {
	t.Parallel()
	files := sources(t)
	imports := regexp.MustCompile(`(?s)(?:import|export)\s+\{([^}]*)\}\s+from\s+'([^']+)'`)
	reached := map[string]bool{"main.js": true}
	for queue := []string{"main.js"}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		for _, found := range imports.FindAllStringSubmatch(files[name], -1) {
			target := path.Join(path.Dir(name), found[2])
			text, here := files[target]
			if !here || !strings.HasPrefix(found[2], ".") {
				t.Errorf("%s imports %s", name, found[2])
				continue
			}
			for what := range strings.SplitSeq(found[1], ",") {
				what, _, _ = strings.Cut(strings.TrimSpace(what), " as ")
				exported := regexp.MustCompile(`export\s+(?:async\s+)?(?:function|const|class|let)\s+` + what + `\b|export\s*\{[^}]*\b` + what + `\b[^}]*\}`)
				if what != "" && !exported.MatchString(text) {
					t.Errorf("%s imports %s, which %s does not export", name, what, target)
				}
			}
			if !reached[target] {
				reached[target] = true
				queue = append(queue, target)
			}
		}
	}
	for name := range scripts(t) {
		if !reached[name] {
			t.Errorf("%s is imported nowhere", name)
		}
	}
	for _, used := range []string{"main.js", "console.css", "icon.svg"} {
		if !strings.Contains(files["index.html"], `"`+used+`"`) {
			t.Errorf("index.html does not use %s", used)
		}
	}
}

// TestOnlyThePublicAPIIsCalled: what the console does, everybody's key can do
// with curl.
func TestOnlyThePublicAPIIsCalled(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	public := make(map[string]bool)
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for p := range document.Paths {
		public[parameter.ReplaceAllString(p, "*")] = true
	}
	literal := regexp.MustCompile("['`](/(?:v1|healthz|readyz|metrics)[^'`]*)['`]")
	ofSession := regexp.MustCompile(`\bpath\(\w+(?:\.\w+)*((?:, [^,()]+)*)\)`)
	calls := 0
	check := func(name, p string) {
		calls++
		if !public[p] {
			t.Errorf("%s calls %s, which is not in the OpenAPI document", name, p)
		}
	}
	for name, text := range scripts(t) {
		for _, found := range literal.FindAllStringSubmatch(text, -1) {
			if p := regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(found[1], "*"); name != "lib/api.js" || p != "/v1/sessions" {
				check(name, p)
			}
		}
		for _, found := range ofSession.FindAllStringSubmatch(text, -1) {
			p := "/v1/sessions/*"
			for _, part := range strings.Split(found[1], ", ")[1:] {
				if strings.HasPrefix(part, "'") {
					p += "/" + strings.Trim(part, "'")
				} else {
					p += "/*"
				}
			}
			check(name, p)
		}
	}
	if calls < 12 {
		t.Errorf("found %d calls; the test no longer sees them", calls)
	}
}

func TestVendoredFilesAreTheOnesNamed(t *testing.T) {
	t.Parallel()
	files := sources(t)
	sum := sha256.Sum256([]byte(files["vendor/htm-preact.js"]))
	readme := files["vendor/README.md"]
	if !strings.Contains(readme, hex.EncodeToString(sum[:])) {
		t.Error("vendor/htm-preact.js is another file than vendor/README.md says")
	}
	var names []string
	for name := range files {
		if strings.HasPrefix(name, "vendor/") {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "README.md" && !strings.Contains(readme, name) {
			t.Errorf("vendor/README.md does not tell of %s", name)
		}
	}
	if !strings.Contains(files["vendor/preact-LICENSE"], "MIT License") || !strings.Contains(files["vendor/htm-LICENSE"], "Apache License") {
		t.Error("a licence is missing")
	}
}
