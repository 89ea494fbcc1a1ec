package api_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/audit"
	"github.com/engined/engined/internal/store"
)

func TestANodeRefusesWhatItCannotAnswerNow(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, func(c *api.Config) { c.MaxCalls = 2 })
	f.block = true
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for _, body := range []string{`{"message":{"n":1}}`, `{"message":{"n":2}}`} {
		calls.Go(func() { serveRequest(a, newRequest(http.MethodPost, known+"/ingest", body).WithContext(ctx)) })
		for { // until the engine has it
			if p, ok := f.params().(contextengine.IngestParams); ok && strings.Contains(body, string(p.Message)) {
				break
			}
			runtime.Gosched()
		}
	}
	w := ask(a, http.MethodGet, "/v1/sessions", "")
	if slug, p := problem(t, w); slug != "too-busy" || w.Code != 503 || w.Header().Get("Retry-After") != "1" || p.Limit != 2 {
		t.Errorf("%d %s %+v", w.Code, slug, p)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := ask(a, http.MethodGet, path, ""); w.Code != 200 {
			t.Errorf("%s of a busy node: %d", path, w.Code)
		}
	}
	cancel()
	calls.Wait()
	if w := ask(a, http.MethodGet, "/v1/sessions", ""); w.Code != 200 {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// strictness refuses as it is told.
type strictness struct{ enter, grow error }

func (s strictness) Enter(string, bool) (func(), error) { return func() {}, s.enter }

func (s strictness) Grow(_ string, exists func() (bool, error)) error {
	if known, err := exists(); err != nil || known {
		return err
	}
	return s.grow
}

func TestTenantLimitsAreProblems(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, func(c *api.Config) {
		c.Limiter = strictness{enter: &access.LimitError{What: "calls a second", Limit: 2.5, Wait: 1200 * time.Millisecond}}
	})
	w := ask(a, http.MethodGet, known, "")
	if slug, p := problem(t, w); w.Code != 429 || slug != "rate-limited" || p.Limit != 3 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("%d %s %+v, Retry-After %s", w.Code, slug, p, w.Header().Get("Retry-After"))
	}
	if w := ask(a, http.MethodGet, "/readyz", ""); w.Code != 200 {
		t.Errorf("a probe: %d", w.Code)
	}

	_, a = withSession(t, func(c *api.Config) { c.Limiter = strictness{grow: &access.LimitError{What: "sessions", Limit: 7}} })
	for _, route := range []string{"ingest", "ingest-batch", "commit-turn", "after-turn", "bootstrap"} {
		w := ask(a, http.MethodPost, "/v1/sessions/new/"+route, posts()[route])
		if slug, p := problem(t, w); w.Code != 403 || slug != "tenant-limit" || p.Limit != 7 || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %d %s %+v", route, w.Code, slug, p)
		}
		if w := ask(a, http.MethodPost, known+"/"+route, posts()[route]); w.Code != 200 {
			t.Errorf("%s of a session that exists: %d %s", route, w.Code, w.Body)
		}
	}
	for _, route := range []string{"assemble", "compact", "maintain"} {
		if w := ask(a, http.MethodPost, "/v1/sessions/new/"+route, posts()[route]); w.Code != 200 {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}

// ledger keeps audit entries in memory and shows them.
type ledger struct {
	mu      sync.Mutex
	entries []audit.Entry
	asked   store.AuditQuery
}

func (l *ledger) add(e audit.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *ledger) Audit(_ context.Context, tenant string, q store.AuditQuery, limit int) ([]store.AuditEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = q
	var out []store.AuditEntry
	for i, e := range slices.Backward(l.entries) {
		if e.Tenant == tenant && len(out) < limit && (q.Before == 0 || int64(i+1) < q.Before) {
			out = append(out, store.AuditEntry{ID: int64(i + 1), Entry: e})
		}
	}
	return out, nil
}

func TestEveryCallIsAudited(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	_, a := withSession(t, func(c *api.Config) {
		c.Audit, c.AuditLog = l.add, l
		c.Auth = func(r *http.Request) (access.Principal, error) {
			switch r.Header.Get("Authorization") {
			case "a":
				return access.Principal{Tenant: "default", Key: "key-a", Scopes: access.Analyst}, nil
			case "root":
				return access.Principal{Tenant: "default", Key: "key-root", Scopes: access.Admin}, nil
			}
			return access.Principal{}, api.ErrUnauthorized
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask(a, http.MethodGet, known, "", "Authorization", "a", "X-Request-ID", "r-1")
	ask(a, http.MethodGet, "/v1/sessions/unknown", "", "Authorization", "a")
	ask(a, http.MethodPost, known+"/ingest", posts()["ingest"], "Authorization", "a")
	ask(a, http.MethodGet, known, "") // nobody's
	ask(a, http.MethodGet, "/readyz", "", "Authorization", "a")
	serveRequest(a, newRequest(http.MethodGet, "/v1/feed/stream", "", "Authorization", "a").WithContext(ctx))
	var got []string
	for _, e := range l.entries {
		if e.Tenant != "default" || e.Key != "key-a" || e.At.IsZero() || e.Request == "" {
			t.Errorf("%+v", e)
		}
		got = append(got, strings.Join([]string{e.Method, e.Route, e.Session, http.StatusText(e.Status)}, " "))
	}
	want := "GET /v1/sessions/{key} known OK|GET /v1/sessions/{key} unknown Not Found|" +
		"POST /v1/sessions/{key}/ingest known Forbidden|GET /v1/feed/stream  OK"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}

	w := ask(a, http.MethodGet, "/v1/audit?limit=1&sessionKey=known&keyId=key-a&since=2030-01-31&until=2030-02-01T12:00:00Z", "", "Authorization", "root")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"next":"4"`) || strings.Count(w.Body.String(), `"keyId"`) != 1 || l.asked.Session != "known" || !l.asked.Since.Equal(time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)) || l.asked.Until.Hour() != 12 {
		t.Errorf("%d %s, %+v", w.Code, w.Body, l.asked)
	}
	ask(a, http.MethodGet, "/v1/audit?after=4", "", "Authorization", "root")
	if l.asked.Before != 4 {
		t.Errorf("%+v", l.asked)
	}
	for _, query := range []string{"after=x", "after=0", "since=yesterday", "until=2030", "limit=0"} {
		if w := ask(a, http.MethodGet, "/v1/audit?"+query, "", "Authorization", "root"); w.Code != 422 {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
}

func TestAKeyThatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, func(c *api.Config) {
		c.Auth = func(*http.Request) (access.Principal, error) {
			return access.Principal{}, errors.Join(errors.New("API key"), store.ErrUnavailable)
		}
	})
	w := ask(a, http.MethodGet, known, "")
	if slug, _ := problem(t, w); w.Code != 503 || slug != "unavailable" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, slug)
	}
}
