package remote_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func slug(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var p struct {
		Type   string `json:"type"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("not a problem: %d %s", w.Code, w.Body)
	}
	return path.Base(p.Type)
}

func TestBadRequestsAreProblems(t *testing.T) {
	t.Parallel()
	full := remote.Handler(&recorder{}, remote.HandlerOptions{MaxMessages: 2, MaxBodyBytes: 300})
	lean := remote.Handler(bare{&recorder{}}, remote.HandlerOptions{})
	secret := remote.Handler(&recorder{}, remote.HandlerOptions{Token: "s"})
	const ingest = "/v1/sessions/k/ingest"
	for name, tc := range map[string]struct {
		h            http.Handler
		method, path string
		body, want   string
		header       []string
	}{
		"no route":          {h: full, method: "POST", path: "/v2/x", want: "not-found"},
		"no call":           {h: full, method: "POST", path: "/v1/sessions/k/nothing", want: "not-found"},
		"too deep":          {h: full, method: "POST", path: "/v1/sessions/a/b/ingest", want: "not-found"},
		"method":            {h: full, method: "GET", path: ingest, want: "method-not-allowed"},
		"info method":       {h: full, method: "POST", path: "/v1/engine", want: "method-not-allowed"},
		"absent":            {h: lean, method: "POST", path: "/v1/sessions/k/maintain", body: "{}", want: "unsupported"},
		"no token":          {h: secret, method: "POST", path: ingest, body: `{"message":{}}`, want: "unauthorized"},
		"other token":       {h: secret, method: "GET", path: "/v1/engine", want: "unauthorized", header: []string{"Authorization", "Bearer t"}},
		"bad tenant":        {h: full, method: "POST", path: ingest, body: `{"message":{}}`, want: "unauthorized", header: []string{remote.TenantHeader, "%zz"}},
		"empty key":         {h: full, method: "POST", path: "/v1/sessions//ingest", body: `{"message":{}}`, want: "validation"},
		"NUL in key":        {h: full, method: "POST", path: "/v1/sessions/%00/ingest", body: `{"message":{}}`, want: "validation"},
		"bad key":           {h: full, method: "POST", path: "/v1/sessions/%ff/ingest", body: `{"message":{}}`, want: "validation"},
		"no JSON":           {h: full, method: "POST", path: ingest, body: `{"message":`, want: "malformed"},
		"two bodies":        {h: full, method: "POST", path: ingest, body: `{"message":{}}{}`, want: "malformed"},
		"bad UTF-8":         {h: full, method: "POST", path: ingest, body: "{\"message\":{\"a\":\"\xff\"}}", want: "malformed"},
		"no object":         {h: full, method: "POST", path: ingest, body: `[]`, want: "validation"},
		"no message":        {h: full, method: "POST", path: ingest, body: `{}`, want: "validation"},
		"message a string":  {h: full, method: "POST", path: ingest, body: `{"message":"x"}`, want: "validation"},
		"messages a map":    {h: full, method: "POST", path: "/v1/sessions/k/ingest-batch", body: `{"messages":{}}`, want: "validation"},
		"messages of null":  {h: full, method: "POST", path: "/v1/sessions/k/ingest-batch", body: `{"messages":[null]}`, want: "validation"},
		"many messages":     {h: full, method: "POST", path: "/v1/sessions/k/assemble", body: `{"messages":[{},{},{}]}`, want: "too-large"},
		"budget of words":   {h: full, method: "POST", path: "/v1/sessions/k/assemble", body: `{"tokenBudget":"many"}`, want: "validation"},
		"fence beyond":      {h: full, method: "POST", path: "/v1/sessions/k/after-turn", body: `{"messages":[],"prePromptMessageCount":1}`, want: "validation"},
		"keys and messages": {h: full, method: "POST", path: "/v1/sessions/k/ingest-batch", body: `{"messages":[{}],"idempotencyKeys":["a","b"]}`, want: "validation"},
		"large body":        {h: full, method: "POST", path: ingest, body: `{"message":{"a":"` + strings.Repeat("a", 300) + `"}}`, want: "too-large"},
		"compressed":        {h: full, method: "POST", path: ingest, body: "x", want: "unsupported-media-type", header: []string{"Content-Encoding", "gzip"}},
		"XML":               {h: full, method: "POST", path: ingest, body: "<x/>", want: "unsupported-media-type", header: []string{"Content-Type", "text/xml"}},
	} {
		w := ask(tc.h, tc.method, tc.path, tc.body, tc.header...)
		if got := slug(t, w); got != tc.want {
			t.Errorf("%s: %d %s, want %s", name, w.Code, got, tc.want)
		}
	}
}

func TestABrokenEngineIsAnAnswer(t *testing.T) {
	t.Parallel()
	panics := remote.Handler(&recorder{during: func(context.Context) { panic("boom") }}, remote.HandlerOptions{})
	broken := &recorder{answer: contextengine.AssembleResult{Messages: []json.RawMessage{json.RawMessage(`{]`)}}}
	for name, h := range map[string]http.Handler{"panic": panics, "broken message": remote.Handler(broken, remote.HandlerOptions{})} {
		w := ask(h, http.MethodPost, "/v1/sessions/k/assemble", "")
		if got := slug(t, w); got != "internal" || w.Code != 500 || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestTheTransportNamesTheSession(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	h := remote.Handler(r, remote.HandlerOptions{Tenant: func(*http.Request) (string, error) { return "mine", nil }})
	ask(h, http.MethodPost, "/v1/sessions/a%2Fb/ingest", `{"message":{},"sessionKey":"other","tenant":"other","Tenant":"other"}`, remote.TenantHeader, "other")
	if p, ok := r.heard().(contextengine.IngestParams); !ok || p.SessionKey != "a/b" || p.Tenant != "mine" {
		t.Errorf("%+v", r.heard())
	}
}
