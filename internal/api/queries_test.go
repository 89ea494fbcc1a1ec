package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
)

func ingestKey(f *fake) string {
	p, _ := f.params().(contextengine.IngestParams)
	return p.IdempotencyKey
}

func TestBadQueries(t *testing.T) {
	t.Parallel()
	_, a := withSession(t, nil)
	long := strings.Repeat("k", 513)
	for _, tc := range []struct {
		path   string
		status int
		field  string
	}{
		{known + "/events?after=x", 422, "after"},
		{known + "/events?after=-1", 422, "after"},
		{known + "/events?after=1.5", 422, "after"},
		{known + "/events?after=99999999999999999999", 422, "after"},
		{known + "/events?limit=0", 422, "limit"},
		{known + "/events?limit=-5", 422, "limit"},
		{known + "/events?limit=-99999999999999999999", 422, "limit"},
		{known + "/events?limit=ten", 422, "limit"},
		{known + "/events?limit=%zz", 400, ""},
		{known + "/events?a;b", 400, ""},
		{known + "/events?type=message.appended", 422, "type"},
		{known + "/events?type=turn.completed,nothing", 422, "type"},
		{known + "/events?type=,", 422, "type"},
		{known + "/events/stream?after=x", 422, "after"},
		{"/v1/sessions?limit=0", 422, "limit"},
		{"/v1/sessions?after=%00", 422, "after"},
		{"/v1/sessions?after=%ff", 422, "after"},
		{"/v1/sessions?after=" + long, 422, "after"},
		{"/v1/sessions?keyContains=%00", 422, "keyContains"},
		{"/v1/sessions?keyContains=" + long, 422, "keyContains"},
		{"/v1/feed?latest=0", 422, "latest"},
		{"/v1/feed?latest=x", 422, "latest"},
		{"/v1/feed?latest=5&after=", 422, "latest"},
		{"/v1/feed?after=x", 422, "after"},
		{"/v1/feed?after=AQ", 422, "after"},
		{"/v1/feed?after=" + url.QueryEscape("AQAA="), 422, "after"},
		{"/v1/feed?after=AgAA", 422, "after"},
		{"/v1/feed?limit=no", 422, "limit"},
		{"/v1/feed/stream?after=zzzz", 422, "after"},
		{known + "/summaries/x", 404, "id"},
		{known + "/summaries/0", 404, "id"},
		{known + "/summaries/-1", 404, "id"},
		{known + "/summaries/1", 404, "id"},
		{known + "/summaries/99999999999999999999", 404, "id"},
		{known + "/summaries/7/sources", 404, "id"},
		{known + "/summaries/7/expand", 404, "id"},
		{known + "/summaries/7/expand?maxTokens=0", 422, "maxTokens"},
		{known + "/summaries/7/expand?maxTokens=x", 422, "maxTokens"},
		{known + "/summaries/7/expand?after=-1", 422, "after"},
	} {
		w := ask(a, http.MethodGet, tc.path, "")
		if _, p := problem(t, w); w.Code != tc.status || p.Field != tc.field {
			t.Errorf("%.60s: %d %+v", tc.path, w.Code, p)
		}
	}
	for _, id := range []string{"x", "-1", "1.5", "\xff"} {
		w := ask(a, http.MethodGet, known+"/events/stream", "", "Last-Event-ID", id)
		if _, p := problem(t, w); w.Code != 422 || p.Field != "Last-Event-ID" {
			t.Errorf("Last-Event-ID %q: %d %+v", id, w.Code, p)
		}
		w = ask(a, http.MethodGet, "/v1/feed/stream", "", "Last-Event-ID", id)
		if _, p := problem(t, w); w.Code != 422 || p.Field != "Last-Event-ID" {
			t.Errorf("feed's Last-Event-ID %q: %d %+v", id, w.Code, p)
		}
	}
}

func TestUnknownSessions(t *testing.T) {
	t.Parallel()
	f, a := withSession(t, nil)
	f.put("other", "theirs", 1, []byte(`{}`))
	for _, key := range []string{"nobody", "theirs", "KNOWN"} {
		base := "/v1/sessions/" + key
		for _, path := range []string{"", "/events", "/events/stream", "/summaries", "/summaries/1", "/summaries/1/sources", "/summaries/1/expand"} {
			w := ask(a, http.MethodGet, base+path, "")
			if slug, p := problem(t, w); slug != "unknown-session" || w.Code != 404 || strings.Contains(p.Detail, key) {
				t.Errorf("GET %s%s: %d %s %+v", base, path, w.Code, slug, p)
			}
		}
		for _, path := range []string{"reset", "rewind", "undo-compaction"} {
			w := ask(a, http.MethodPost, base+"/"+path, posts()[path])
			if slug, _ := problem(t, w); slug != "unknown-session" || w.Code != 404 {
				t.Errorf("POST %s/%s: %d %s", base, path, w.Code, slug)
			}
		}
		for _, path := range []string{"assemble", "compact", "maintain"} {
			w := ask(a, http.MethodPost, base+"/"+path, posts()[path])
			if w.Code != 200 {
				t.Errorf("POST %s/%s: %d %s", base, path, w.Code, w.Body)
			}
		}
	}
	w := ask(a, http.MethodPost, "/v1/sessions/nobody/assemble", `{}`)
	if got := w.Body.String(); !strings.Contains(got, `{"messages":[],`) || !strings.Contains(got, `"head":0,"epoch":1`) {
		t.Errorf("empty window: %s", got)
	}
}
