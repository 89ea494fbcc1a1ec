package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func node(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	c, err := New(srv.URL+"/", "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

func TestMessagesGoOutByteForByte(t *testing.T) {
	t.Parallel()
	messages := []json.RawMessage{
		json.RawMessage(`{ "role" : "user","content":"<&>\u0000\ud800" , "n":1.0e+2}`),
		json.RawMessage("{\"role\":\"user\",\n\"content\":\"\u2028\"}"),
	}
	var path, auth string
	var body []byte
	c := node(t, func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.EscapedPath(), r.Header.Get("Authorization")
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, `{"ingestedCount":1,"seqs":[1,2],"head":2}`)
	})
	res, err := c.IngestBatch(t.Context(), "agent:main/ü x%", messages, []string{`a"b`, ""})
	if err != nil {
		t.Fatal(err)
	}
	if res.IngestedCount != 1 || res.Head != 2 {
		t.Errorf("result %+v", res)
	}
	if want := "/v1/sessions/agent:main%2F%C3%BC%20x%25/ingest-batch"; path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	if auth != "Bearer secret" {
		t.Errorf("authorization %q", auth)
	}
	want := `{"messages":[` + string(messages[0]) + "," + string(messages[1]) + `],"idempotencyKeys":["a\"b",""]}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesComeInByteForByte(t *testing.T) {
	t.Parallel()
	const message = `{ "role":"user" , "content":"<&>\u0000\ud800 \u2028"}`
	const row = `{"seq":3,"type":"message.appended","sessionKey":"k","epoch":1,"new": [1, 2],"message":` + message + `}`
	c := node(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RawQuery; got != "after=2&limit=5" {
			t.Errorf("query %q", got)
		}
		io.WriteString(w, `{"events":[`+row+`],"next":3}`)
	})
	rows, next, err := c.Events(t.Context(), "k", 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	if next != 3 || string(rows[0].Message) != message || string(rows[0].Raw) != row {
		t.Errorf("next %d, message %s, raw %s", next, rows[0].Message, rows[0].Raw)
	}
}

func TestProblemsAreTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"problem": {412, `{"type":"https://engined.dev/problems/stale-head","title":"Stale head","status":412,"detail":"the session is at 7","head":7}`, "the session is at 7 (412 stale-head)"},
		"field":   {422, `{"title":"Invalid","detail":"must be positive","field":"tokenBudget"}`, "tokenBudget: must be positive (422)"},
		"no JSON": {502, "bad gateway\n", "bad gateway (502)"},
		"nothing": {404, "", "Not Found (404)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := node(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			})
			_, _, err := c.Assemble(t.Context(), "k", contextengine.AssembleParams{})
			var p *Problem
			if !errors.As(err, &p) || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	var u *UnreachableError
	if _, err := c.Health(t.Context()); !errors.As(err, &u) {
		t.Errorf("error %v", err)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	c := node(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "4" {
			t.Errorf("Last-Event-ID %q", r.Header.Get("Last-Event-ID"))
		}
		io.WriteString(w, ": hello\n\nid: 5\nevent: message.appended\ndata: {\"seq\":5}\n\n"+
			"id: 6\r\ndata:{\"seq\":6,\r\ndata: \"type\":\"x\"}\r\n\r\nid: 7\ndata: {\"seq\":7}\n")
	})
	var got []int64
	if err := c.Stream(t.Context(), "k", 4, func(e Event) error { got = append(got, e.Seq); return nil }); err != nil {
		t.Fatal(err)
	}
	// 7 was cut off before its end.
	if diff := cmp.Diff([]int64{5, 6}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`null`: "", ``: "", `"a:b"`: "a:b", `12`: "12", `"12"`: "12"} {
		if got := cursor(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

func TestReadyTellsWhatIsNot(t *testing.T) {
	t.Parallel()
	c := node(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"title":"Not ready","detail":"postgres: away"}`)
	})
	r, err := c.Ready(t.Context())
	if r.Ready || err != nil || !strings.Contains(r.Detail, "postgres: away") {
		t.Errorf("%+v %v", r, err)
	}
}
