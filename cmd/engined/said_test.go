package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// nodeThatSays answers every path with what says has for it, or that there is no
// such session.
func nodeThatSays(t *testing.T, says map[string]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := says[r.URL.Path]
		if !ok {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			body = `{"type":"x/unknown-session","title":"Unknown","status":404,"detail":"no session has this key"}`
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestGrepSaysWhatItDidNotSearch: "nothing found" must not be taken for "nobody
// said it".
func TestGrepSaysWhatItDidNotSearch(t *testing.T) {
	t.Parallel()
	url := nodeThatSays(t, map[string]string{
		"/v1/search":         `{"hits":[],"next":null,"index":{"current":true,"note":"encrypted sessions were not searched"}}`,
		"/v1/sessions/known": `{"sessionKey":"known"}`,
	})
	for line, want := range map[string]string{
		"grep x":                    "engined: encrypted sessions were not searched\nengined: nothing found",
		"grep x --session known":    "nothing found",
		"maintain misspelt":         "no session has this key",
		"grep x --session misspelt": "no session has this key",
		"grep x --session x --json": "encrypted sessions were not searched",
	} {
		if got := engined(t, append(strings.Fields(line), "--url", url)...); !strings.Contains(got.err, want) {
			t.Errorf("engined %s: %d %q", line, got.code, got.err)
		}
	}
}

// TestAWindowBeyondTheHeadIsSaidToBeThatOfNow, since it is no window of the past.
func TestAWindowBeyondTheHeadIsSaidToBeThatOfNow(t *testing.T) {
	t.Parallel()
	url := nodeThatSays(t, map[string]string{
		"/v1/sessions/s":          `{"sessionKey":"s","head":40}`,
		"/v1/sessions/s/assemble": `{"messages":[],"head":40,"epoch":1}`,
	})
	for line, want := range map[string]string{
		"window s --as-of 41":        "--as-of 41 is beyond the head, 40",
		"window s --as-of 41 --json": "--as-of 41 is beyond the head, 40",
		"diff s --from 3 --to 500":   "--to 500 is beyond the head, 40",
		"window s --as-of 40":        "",
		"diff s":                     "say what differs",
	} {
		got := engined(t, append(strings.Fields(line), "--url", url)...)
		if !strings.Contains(got.err, want) || want == "" && got.err != "" {
			t.Errorf("engined %s: %q", line, got.err)
		}
	}
}

func TestErrorsSayOnceWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	const away = "http://127.0.0.1:1"
	if got := engined(t, "sessions", "--url", away).err; strings.Count(got, away) != 1 || !strings.Contains(got, "connection refused") {
		t.Errorf("nobody there: %q", got)
	}
	quiet := func(handler http.HandlerFunc, start func(*httptest.Server)) string {
		srv := httptest.NewUnstartedServer(handler)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(srv)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"x/unauthorized","title":"A valid API key is required","status":401}`)
	}
	secure, plain := quiet(refuse, (*httptest.Server).StartTLS), quiet(refuse, (*httptest.Server).Start)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--url", strings.Replace(secure, "https:", "http:", 1)}, "Hint: this node answers HTTPS"},
		{[]string{"--url", strings.Replace(plain, "http:", "https:", 1)}, "Hint: this node answers plain HTTP"},
		{[]string{"--url", plain}, "Hint: give an API key"},
		{[]string{"--url", plain, "--key", "old"}, "Hint: the key that was given does not count here"},
	} {
		if got := engined(t, append([]string{"sessions"}, tc.args...)...).err; !strings.Contains(got, tc.want) {
			t.Errorf("engined sessions %v: %q, want %q", tc.args, got, tc.want)
		}
	}
}

// TestSummarizersInWordsOfPeople: who knows no circuit breaker reads who is asked.
func TestSummarizersInWordsOfPeople(t *testing.T) {
	t.Parallel()
	url := nodeThatSays(t, map[string]string{
		"/v1/summarizers": `{"summarizers":[{"name":"a","kind":"openai","state":"closed"},{"name":"b","kind":"openai","state":"open","openUntil":"2026-01-02T12:05:00Z","failures":5,"lastError":"down (503)"},` +
			`{"name":"c","kind":"host","state":"half-open","openUntil":"2026-01-02T11:05:00Z","failures":1,"lastError":"slow"},{"name":"d","state":"open","openUntil":"2026-01-02T12:05:00Z","failures":7}],` +
			`"spend":{"costMicros":0,"limitMicros":5000000,"resetsAt":"2026-01-03T00:00:00Z"}}`,
		"/readyz":     `{"ready":true,"checks":[]}`,
		"/v1/engines": `{"serving":"lossless","engines":[],"quarantines":[]}`,
	})
	golden(t, "summarizers", engined(t, "summarizers", "--url", url).ok(t).out)
	if got := engined(t, "doctor", "--url", url); !strings.Contains(got.out, "✗ models     c is on trial after 1 failure: slow") {
		t.Errorf("doctor:\n%s", got.out)
	}
	url = nodeThatSays(t, map[string]string{
		"/v1/summarizers": `{"summarizers":[{"name":"a","kind":"openai","state":"closed"},{"name":"d","state":"open","openUntil":"2026-01-02T12:05:00Z","failures":7}]}`,
		"/readyz":         `{"ready":true,"checks":[]}`,
		"/v1/engines":     `{"serving":"lossless","engines":[],"quarantines":[]}`,
	})
	if got := engined(t, "doctor", "--url", url).ok(t); !strings.Contains(got.out, "✓ models     1 summarizer may be asked") {
		t.Errorf("a former one is wrong with the node:\n%s", got.out)
	}
}

// TestACutListingSaysSo, also where nobody asked for a limit, as with audit.
func TestACutListingSaysSo(t *testing.T) {
	t.Parallel()
	url := nodeThatSays(t, map[string]string{
		"/v1/sessions":          `{"sessions":[{"sessionKey":"a"},{"sessionKey":"b"}],"next":"b"}`,
		"/v1/sessions/s/events": `{"events":[{"seq":1},{"seq":2}],"next":"2"}`,
		"/v1/audit":             `{"audit":[{"id":2},{"id":1}],"next":"1"}`,
		"/v1/search":            `{"hits":[{"seq":1},{"seq":2}],"next":"x","index":{"current":true}}`,
	})
	for _, line := range []string{"sessions", "events s", "audit", "grep x"} {
		for limit, says := range map[string]bool{"--limit=2": true, "--limit=2 --json": false} {
			got := engined(t, append(strings.Fields(line+" "+limit), "--url", url)...).ok(t)
			if strings.Contains(got.err, "there are more; --limit 4 shows more") != says {
				t.Errorf("engined %s %s: %q", line, limit, got.err)
			}
		}
	}
}
