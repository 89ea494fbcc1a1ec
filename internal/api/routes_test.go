package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
)

// keys are session keys that paths like to break.
func keys() []string {
	return []string{
		"a", "agent:main:discord:channel:42", "agent:main/x y", "a/b/c", "/", "//", "/a/", "100%", "%2F", "%", "%%41", "a+b", "a b",
		"?", "#", "a?b=c#d", "..", ".", "...", "../../etc/passwd", "./x", "🦞", "ключ", "e\u0301", "\u00e9", "a\tb\nc", "\x7f", "\\", "\"", "<&>",
		"events", "ingest", "\u202e", "\u2028", strings.Repeat("k", 512), strings.Repeat("🔥", 128), "\ufffd", ";,@&=$",
	}
}

func TestKeysRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	server := httptest.NewServer(a)
	defer server.Close()
	for i, key := range keys() {
		for _, path := range []string{url.PathEscape(key), escapeAll(key)} {
			for name, answer := range map[string]func(method, path, body string) (int, string){
				"handler": func(method, path, body string) (int, string) {
					w := ask(a, method, path, body)
					return w.Code, w.Body.String()
				},
				"server": func(method, path, body string) (int, string) { return overWire(t, server, method, path, body) },
			} {
				status, body := answer(http.MethodPost, "/v1/sessions/"+path+"/ingest", fmt.Sprintf(`{"message":{"n":%d}}`, i))
				if status != 200 {
					t.Errorf("%s: ingest at %q as %s: %d %s", name, key, path, status, body)
					continue
				}
				if p, ok := f.params().(contextengine.IngestParams); !ok || p.SessionKey != key || p.Tenant != "default" {
					t.Errorf("%s: %q as %s became %q", name, key, path, p.SessionKey)
				}
				var row api.SessionDetail
				status, body = answer(http.MethodGet, "/v1/sessions/"+path, "")
				if err := json.Unmarshal([]byte(body), &row); status != 200 || err != nil || row.SessionKey != key {
					t.Errorf("%s: get %q as %s: %d %s", name, key, path, status, body)
				}
				var page api.EventPage
				status, body = answer(http.MethodGet, "/v1/sessions/"+path+"/events", "")
				if err := json.Unmarshal([]byte(body), &page); status != 200 || err != nil || len(page.Events) == 0 || page.Events[0].SessionKey != key {
					t.Errorf("%s: events of %q as %s: %d %s", name, key, path, status, body)
				}
			}
		}
	}
	// As many sessions as keys: none fell together with another.
	var page api.SessionPage
	if err := json.Unmarshal(ask(a, http.MethodGet, "/v1/sessions?limit=500", "").Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Sessions) != len(keys()) || page.Next != nil {
		t.Errorf("%d sessions of %d keys", len(page.Sessions), len(keys()))
	}
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func overWire(t *testing.T, s *httptest.Server, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := fmt.Fprint(&b, read(t, res)); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String()
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for _, path := range []string{"%00", "a%00b", "%ff", "%c0%80", "%ed%a0%80", strings.Repeat("k", 513), strings.Repeat("%F0%9F%94%A5", 128) + "k"} {
		for route, body := range posts() {
			w := ask(a, http.MethodPost, "/v1/sessions/"+path+"/"+route, body)
			if slug, p := problem(t, w); slug != "validation" || p.Field != "sessionKey" {
				t.Errorf("%s at %.20s: %d %s %+v", route, path, w.Code, slug, p)
			}
		}
		for _, route := range []string{"", "/events", "/events/stream", "/summaries", "/summaries/1"} {
			w := ask(a, http.MethodGet, "/v1/sessions/"+path+route, "")
			if slug, p := problem(t, w); slug != "validation" || p.Field != "sessionKey" {
				t.Errorf("%s at %.20s: %d %s %+v", route, path, w.Code, slug, p)
			}
		}
	}
}

func TestLostPaths(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for _, path := range []string{
		"/v1", "/v1/", "/v2/sessions", "/v1/sessions/", "/v1/sessions//ingest", "//v1/sessions", "/v1//sessions", "/v1/sessions/a/b/ingest",
		"/v1/sessions/known/", "/v1/sessions/known/nothing", "/v1/sessions/known/events/", "/v1/sessions/known/summaries/1/x", "/favicon.ico",
		"/../v1/sessions", "/v1/./sessions", "/healthz/", "/V1/sessions", "/docs/x", "/console/", "/.well-known/x", "/%2e%2e/", "/v1%2Fsessions",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, "BREW", http.MethodConnect} {
			w := ask(a, method, path, "{}")
			if slug, _ := problem(t, w); slug != "not-found" || w.Code != 404 {
				t.Errorf("%s %s: %d %s", method, path, w.Code, slug)
			}
		}
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for path, allow := range map[string]string{
		known:                       "GET, HEAD, DELETE, OPTIONS",
		known + "/ingest":           "POST, OPTIONS",
		known + "/lease":            "POST, DELETE, OPTIONS",
		known + "/events":           "GET, HEAD, OPTIONS",
		known + "/summaries/1":      "GET, HEAD, OPTIONS",
		"/v1/sessions":              "GET, HEAD, DELETE, OPTIONS",
		"/v1/feed":                  "GET, HEAD, OPTIONS",
		"/healthz":                  "GET, HEAD, OPTIONS",
		"/metrics":                  "GET, HEAD, OPTIONS",
		"/v1/sessions/../ingest":    "POST, OPTIONS",
		"/v1/sessions/%2e%2e/reset": "POST, OPTIONS",
	} {
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, "BREW", http.MethodTrace, http.MethodPost, http.MethodGet} {
			if strings.Contains(allow, method) {
				continue
			}
			w := ask(a, method, path, "{}")
			if slug, _ := problem(t, w); slug != "method-not-allowed" || w.Code != 405 || w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: %d %s, allow %q", method, path, w.Code, slug, w.Header().Get("Allow"))
			}
		}
		if w := ask(a, http.MethodOptions, path, ""); w.Code != 204 || w.Header().Get("Allow") != allow {
			t.Errorf("OPTIONS %s: %d %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", known, known + "/events", known + "/events/stream"} {
		if w := ask(a, http.MethodHead, path, ""); w.Code != 200 {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for _, path := range []string{"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics", "/nothing", known, known + "/events", "/v1/sessions//"} {
		h := ask(a, http.MethodGet, path, "").Header()
		for _, name := range []string{"X-Content-Type-Options", "Referrer-Policy", "Content-Security-Policy", "X-Frame-Options", "X-Request-Id"} {
			if h.Get(name) == "" {
				t.Errorf("%s has no %s", path, name)
			}
		}
	}
	for id, kept := range map[string]bool{"abc-1": true, "a b": false, strings.Repeat("x", 65): false, "\xff": false} {
		if got := ask(a, http.MethodGet, "/healthz", "", "X-Request-ID", id).Header().Get("X-Request-ID"); (got == id) != kept {
			t.Errorf("request id %q became %q", id, got)
		}
	}
}

func TestKeysOfCallers(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, func(c *api.Config) { c.Auth = keyed(map[string]string{"secret-1": "default", "secret-2": "t2"}) })
	for _, header := range []string{"", "secret-1", "Basic secret-1", "Bearer", "Bearer ", "Bearer nope", "bearer secret-1x", "Bearer \x00"} {
		for _, path := range []string{known, known + "/events", "/v1/sessions", "/v1/feed", "/v1/engines", known + "/events/stream", "/v1/sessions/%00"} {
			w := ask(a, http.MethodGet, path, "", "Authorization", header)
			if slug, _ := problem(t, w); slug != "unauthorized" || w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %q: %d %s", path, header, w.Code, slug)
			}
		}
		for route, body := range posts() {
			if w := ask(a, http.MethodPost, known+"/"+route, body, "Authorization", header); w.Code != 401 {
				t.Errorf("%s with %q: %d", route, header, w.Code)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"} {
		if w := ask(a, http.MethodGet, path, ""); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(a, http.MethodGet, known, "", "Authorization", "bEARER secret-1"); w.Code != 200 {
		t.Errorf("own session: %d", w.Code)
	}
	if w := ask(a, http.MethodGet, known, "", "Authorization", "Bearer secret-2"); w.Code != 404 {
		t.Errorf("another tenant's session: %d", w.Code)
	}
	ask(a, http.MethodPost, known+"/ingest", `{"message":{},"tenant":"default","Tenant":"default","sessionKey":"x"}`, "Authorization", "Bearer secret-2")
	if p, ok := f.params().(contextengine.IngestParams); !ok || p.Tenant != "t2" || p.SessionKey != "known" {
		t.Errorf("tenant and key come from the caller's key and the path: %+v", p)
	}
}

func TestNotOpenByAccident(t *testing.T) {
	t.Parallel()
	f := newFake()
	if _, err := api.New(api.Config{Engine: f, Steps: f, Branches: f, Log: f}); err == nil {
		t.Error("served without Auth")
	}
}

func TestOtherOriginsMayNotWrite(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		w := ask(a, http.MethodPost, known+"/ingest", posts()["ingest"], headers...)
		if slug, _ := problem(t, w); slug != "forbidden" || w.Code != 403 {
			t.Errorf("%v: %d %s", headers, w.Code, slug)
		}
	}
	if w := ask(a, http.MethodPost, known+"/ingest", posts()["ingest"], "Sec-Fetch-Site", "same-origin"); w.Code != 200 {
		t.Errorf("same origin: %d", w.Code)
	}
}
