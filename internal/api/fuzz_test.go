package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/engined/engined/internal/api"
)

// FuzzBodies: whatever is sent to whichever route, the answer is the call's or a
// 4xx problem, and what was taken is in the log verbatim.
func FuzzBodies(f *testing.F) {
	routes := make([]string, 0, len(posts()))
	for route := range posts() {
		routes = append(routes, route)
	}
	slices.Sort(routes)
	for i, route := range routes {
		f.Add(i, []byte(posts()[route]), "application/json", "")
	}
	for i, m := range verbatim() {
		f.Add(i, []byte(`{"message":`+m+`,"messages":[`+m+`],"sessionId":"s","advancementKey":"k","prePromptMessageCount":0}`), "", "")
	}
	for _, s := range []string{`{"messages":[[[]]]}`, `{"idempotencyKeys":["\ud800"],"messages":[{}]}`, `{"usage":{"input":1e99}}`, `[`, `null`, "\x1f\x8b", `{"toSeq":9223372036854775807}`} {
		for i := range routes {
			f.Add(i, []byte(s), "application/json", "gzip")
			f.Add(i, []byte(s), "text/plain; charset=\"", "")
		}
	}
	store, a := withSession(f, nil)
	f.Fuzz(func(t *testing.T, n int, body []byte, contentType, encoding string) {
		store.sessions["default\x00known"], store.order = store.sessions["default\x00known"][:1], nil
		route := routes[uint(n)%uint(len(routes))]
		r := httptest.NewRequest(http.MethodPost, known+"/"+route, bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		sane(t, w)
		if w.Code != 200 || encoding == "gzip" {
			return
		}
		for _, e := range store.sessions["default\x00known"][1:] {
			if !bytes.Contains(body, e.Body) {
				t.Errorf("stored %q of %q", e.Body, body)
			}
		}
	})
}

// FuzzPaths: no path, query or header is a server's fault.
func FuzzPaths(f *testing.F) {
	for _, key := range keys() {
		f.Add("/v1/sessions/"+url.PathEscape(key)+"/events", "after=1&limit=2", "1", "GET")
		f.Add("/v1/sessions/"+key, "after="+key, key, "POST")
	}
	for _, path := range []string{"/v1/feed", "/v1/sessions", "/v1/sessions/known/summaries/1/sources", "/v1/engines", "/docs", "*", "", "/v1/sessions/%2F/events", "//", "/%", "/v1/sessions/%2f%2f/ingest"} {
		f.Add(path, "after=AQAA&limit=1", "AQAA", "HEAD")
		f.Add(path, "%zz;&=", "\x00", "OPTIONS")
	}
	_, a := withSession(f, nil)
	f.Fuzz(func(t *testing.T, path, query, header, method string) {
		if method == "" || strings.ContainsAny(method, " \t\r\n\x00") || strings.HasSuffix(path, "/stream") {
			return // net/http takes no such method, and streams do not end
		}
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return // nor such a path
		}
		u.RawQuery = query
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader("{}"))
		r.URL, r.Method, r.RequestURI = u, method, u.RequestURI()
		for _, name := range []string{"Last-Event-ID", "Idempotency-Key", "X-Request-Id", "Authorization", "Origin"} {
			r.Header.Set(name, header)
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		sane(t, w)
	})
}

// sane: an answer is JSON, a page, a redirect of ours or a 4xx problem.
func sane(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	switch {
	case w.Code >= 500:
		t.Errorf("%d %s", w.Code, w.Body)
	case w.Code >= 400:
		var p api.Problem
		if w.Header().Get("Content-Type") != "application/problem+json" || json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Status != w.Code {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	case w.Code >= 300 && w.Header().Get("Location") != "/docs":
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	case w.Code == 200 && w.Header().Get("Content-Type") == "application/json" && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()):
		t.Errorf("answer %s", w.Body)
	}
}
