package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/vault"
)

func read(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestErrorsOfTheEngine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		slug   string
		holds  string
	}{
		{&contextengine.InvalidError{Field: "messages[3]", Reason: "odd"}, 422, "validation", `"field":"messages[3]"`},
		{&contextengine.InvalidError{Field: "message", Reason: "big", Limit: 9, TooLarge: true}, 413, "too-large", `"limit":9`},
		{&message.InvalidError{Reason: "nested too deeply", Limit: 512}, 422, "validation", `"limit":512`},
		{&contextengine.StaleHeadError{Expected: 1, Head: 0}, 412, "stale-head", `"head":0`},
		{&contextengine.EpochConflictError{Expected: 1, Epoch: 7}, 409, "epoch-conflict", `"epoch":7`},
		{&contextengine.IdempotencyConflictError{Key: "k", Seq: 4}, 409, "idempotency-conflict", `"seq":4`},
		{contextengine.ErrUnknownSession, 404, "unknown-session", ""},
		{contextengine.ErrSessionErased, 409, "session-erased", ""},
		{contextengine.ErrNothingToUndo, 409, "nothing-to-undo", ""},
		{contextengine.ErrSessionExists, 409, "session-exists", ""},
		{contextengine.ErrSubagentBegan, 409, "subagent-began", ""},
		{store.ErrLeaseStale, 409, "lease-stale", ""},
		{store.ErrUnavailable, 503, "unavailable", ""},
		{store.ErrTooBusy, 503, "too-busy", ""},
		{api.ErrForbidden, 403, "forbidden", ""},
		{vault.ErrClosed, 503, "encryption-unavailable", "encryption-key-file"},
		{vault.ErrMaster, 503, "encryption-unavailable", "encryption-key-file"},
		{vault.ErrUnavailable, 503, "encryption-unavailable", "repeated safely"},
		{vault.ErrKeyGone, 410, "session-key-gone", ""},
		{&vault.CorruptError{Kind: vault.Event, Seq: 12}, 410, "damaged", `"seq":12`},
		{&vault.CorruptError{Kind: vault.SessionKey}, 410, "damaged", "session key"},
		{context.DeadlineExceeded, 504, "deadline", ""},
		{context.Canceled, 503, "unavailable", ""},
		{errors.New("password=hunter2"), 500, "internal", ""},
	} {
		f, a := withSession(t, nil)
		f.err = fmt.Errorf("engine: %w", tc.err)
		for route, body := range posts() {
			w := ask(a, http.MethodPost, known+"/"+route, body)
			slug, _ := problem(t, w)
			if w.Code != tc.status || slug != tc.slug || !strings.Contains(w.Body.String(), tc.holds) {
				t.Errorf("%s, %v: %d %s", route, tc.err, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%s tells an internal error's text: %s", route, w.Body)
			}
			if retry := w.Header().Get("Retry-After"); (w.Code == 503) != (retry != "") {
				t.Errorf("%s, %v: Retry-After %q", route, tc.err, retry)
			}
		}
	}
}

func TestTextsOfRefusals(t *testing.T) {
	t.Parallel()
	deep := &message.InvalidError{Reason: "nested too deeply", Limit: 512}
	for want, err := range map[string]error{
		"message: nested too deeply (limit 512)":                                 &contextengine.InvalidError{Field: "message", Reason: deep.Error()},
		"messages[3]: nested too deeply (limit 512)":                             &contextengine.InvalidError{Field: "messages[3]", Reason: deep.Error()},
		`idempotency conflict: key "k" already names another payload`:            &contextengine.IdempotencyConflictError{Key: "k"},
		`idempotency conflict: key "k" already names another payload (seq 4)`:    &contextengine.IdempotencyConflictError{Key: "k", Seq: 4},
		"messages[0]: already names another payload, says the message: it is so": &contextengine.InvalidError{Field: "messages[0]", Reason: "already names another payload, says the message: it is so"},
	} {
		f, a := withSession(t, nil)
		f.err = err
		if _, p := problem(t, ask(a, http.MethodPost, known+"/ingest", posts()["ingest"])); p.Detail != want {
			t.Errorf("%q, want %q", p.Detail, want)
		}
	}
}

func TestReadsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	f.readErr = fmt.Errorf("session: %w", store.ErrUnavailable)
	for _, path := range []string{known, known + "/events", known + "/events/stream", known + "/summaries", known + "/summaries/1", "/v1/feed", "/v1/feed/stream"} {
		w := ask(a, http.MethodGet, path, "")
		if slug, _ := problem(t, w); slug != "unavailable" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, w.Code, slug)
		}
	}
}

func TestReadsOfWhatIsEncryptedAndCannotBeRead(t *testing.T) {
	t.Parallel()
	for slug, tc := range map[string]struct {
		err    error
		status int
	}{
		"encryption-unavailable": {vault.ErrClosed, 503}, "session-key-gone": {vault.ErrKeyGone, 410},
		"damaged": {&vault.CorruptError{Kind: vault.Event, Seq: 3}, 410},
	} {
		f, a := withSession(t, nil)
		f.readErr = fmt.Errorf("events: %w", tc.err)
		for _, path := range []string{known, known + "/events", known + "/events/stream", known + "/summaries", known + "/summaries/1", "/v1/feed", "/v1/feed/stream"} {
			w := ask(a, http.MethodGet, path, "")
			if got, _ := problem(t, w); got != slug || w.Code != tc.status || (w.Header().Get("Retry-After") != "") != (tc.status == 503) {
				t.Errorf("%s: %d %s, Retry-After %q", path, w.Code, got, w.Header().Get("Retry-After"))
			}
		}
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, func(c *api.Config) { c.Timeout, c.CompactTimeout = time.Millisecond, 2*time.Millisecond })
	f.block = true
	for route, body := range posts() {
		w := ask(a, http.MethodPost, known+"/"+route, body)
		if slug, _ := problem(t, w); slug != "deadline" || w.Code != 504 {
			t.Errorf("%s: %d %s", route, w.Code, slug)
		}
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	f.block = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodPost, known+"/ingest", strings.NewReader(posts()["ingest"])).WithContext(ctx)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if w.Body.Len() > 0 {
		t.Errorf("answered nobody: %s", w.Body)
	}
}

// panics is an engine with a bug.
type panics struct{ *fake }

func (panics) Ingest(context.Context, contextengine.IngestParams) (contextengine.IngestResult, error) {
	panic("bug: hunter2")
}

func TestPanics(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	_, a := withSession(t, func(c *api.Config) {
		c.Engine = panics{newFake()}
		c.Logger = slog.New(slog.NewJSONHandler(&lines, nil))
	})
	w := ask(a, http.MethodPost, known+"/ingest", posts()["ingest"])
	if slug, _ := problem(t, w); slug != "internal" || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(lines.String(), "bug: hunter2") || !strings.Contains(lines.String(), "errors_test.go") {
		t.Errorf("the log does not say what happened and where: %s", lines.String())
	}
	if m := ask(a, http.MethodGet, "/metrics", "").Body.String(); !strings.Contains(m, "engined_http_panics_total 1") {
		t.Error("not counted")
	}
}

func TestLogAndMetrics(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	_, a := withSession(t, func(c *api.Config) {
		c.Auth = keyed(map[string]string{"secret-token": "the-tenant"})
		c.Logger = slog.New(slog.NewJSONHandler(&lines, nil))
	})
	ask(a, http.MethodPost, "/v1/sessions/the-key/ingest?q=the-query", `{"message":{"role":"user","content":"the-content"}}`, "Authorization", "Bearer secret-token")
	ask(a, http.MethodPost, "/v1/sessions/the-key/ingest", `{"message":"the-content"}`, "Authorization", "Bearer secret-token")
	ask(a, http.MethodGet, "/the-path", "")
	log := lines.String()
	if strings.Count(log, "\n") != 3 || !strings.Contains(log, `"route":"/v1/sessions/{key}/ingest","status":200`) {
		t.Errorf("log:\n%s", log)
	}
	metrics := ask(a, http.MethodGet, "/metrics", "").Body.String()
	for _, want := range []string{
		`engined_http_request_duration_seconds_count{method="POST",route="/v1/sessions/{key}/ingest",status="200"} 1`,
		`engined_http_request_duration_seconds_count{method="POST",route="/v1/sessions/{key}/ingest",status="422"} 1`,
		`route="other",status="404"} 1`, "engined_http_requests_in_flight 1",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s:\n%s", want, metrics)
		}
	}
	for _, secret := range []string{"secret-token", "the-tenant", "the-key", "the-content", "the-query", "the-path"} {
		if strings.Contains(log, secret) || strings.Contains(metrics, secret) {
			t.Errorf("%s shows in the log or the metrics", secret)
		}
	}
}

// brokenPipe is the connection of a client that left.
type brokenPipe struct{ *httptest.ResponseRecorder }

func (brokenPipe) Write([]byte) (int, error) { return 0, &net.OpError{Op: "write", Err: syscall.EPIPE} }

func TestLeavingAStreamIsNoWarning(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{known + "/events/stream": "DEBUG", "/v1/feed/stream": "DEBUG", known + "/events": "DEBUG"} {
		var out bytes.Buffer
		_, a := withSession(t, func(c *api.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		a.ServeHTTP(brokenPipe{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if !strings.Contains(out.String(), "level="+want+` msg="answer broken off"`) {
			t.Errorf("%s: %s", path, out.String())
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	checks := []api.Check{{Name: "postgres", OK: true, Required: true}, {Name: "nats", OK: true}}
	_, a := withSession(t, func(c *api.Config) { c.Ready = func(context.Context) []api.Check { return checks } })
	if w := ask(a, http.MethodGet, "/readyz", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"ready":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	checks[1] = api.Check{Name: "nats", Detail: "no route"}
	if w := ask(a, http.MethodGet, "/readyz", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `{"name":"nats","ok":false,"required":false,"detail":"no route"}`) {
		t.Errorf("without what it can do without: %d %s", w.Code, w.Body)
	}
	checks[0] = api.Check{Name: "postgres", Detail: "does not answer", Required: true}
	w := ask(a, http.MethodGet, "/readyz", "")
	if slug, p := problem(t, w); w.Code != 503 || slug != "not-ready" || len(p.Checks) != 2 || p.Detail != "not ready: postgres" {
		t.Errorf("%d %+v", w.Code, p)
	}
	checks = nil
	a.Drain()
	a.Drain()
	if w := ask(a, http.MethodGet, "/readyz", ""); w.Code != 503 {
		t.Errorf("draining: %d", w.Code)
	}
	if w := ask(a, http.MethodGet, "/healthz", ""); w.Code != 200 {
		t.Errorf("draining and alive: %d", w.Code)
	}
}
