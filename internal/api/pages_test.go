package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/events"
)

func get[T any](t testing.TB, h http.Handler, path string) T {
	t.Helper()
	w := ask(h, http.MethodGet, path, "")
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v %.300s", path, w.Code, err, w.Body)
	}
	return v
}

func TestEventPages(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	const total = 777
	for i := range total {
		f.put("default", "s", events.MessageAppended, fmt.Appendf(nil, `{"n":%d}`, i+1))
	}
	for _, limit := range []int{1, 7, 64, 65, 100, 500, 777, 1000} {
		if limit == 1 && testing.Short() {
			continue
		}
		after, seen, pages := int64(0), int64(0), 0
		for {
			page := get[api.EventPage](t, a, fmt.Sprintf("/v1/sessions/s/events?limit=%d&after=%d", limit, after))
			for _, e := range page.Events {
				if seen++; e.Seq != seen || string(e.Message) != fmt.Sprintf(`{"n":%d}`, seen) {
					t.Fatalf("limit %d: row %d is %+v", limit, seen, e)
				}
			}
			if pages++; page.Next == nil {
				break
			}
			if len(page.Events) != min(limit, 500) || *page.Next != seen {
				t.Fatalf("limit %d: %d rows, next %d after %d", limit, len(page.Events), *page.Next, seen)
			}
			after = *page.Next
		}
		if want := (total + min(limit, 500) - 1) / min(limit, 500); seen != total || pages != want {
			t.Errorf("limit %d: %d rows on %d pages", limit, seen, pages)
		}
	}
	if page := get[api.EventPage](t, a, "/v1/sessions/s/events?limit=99999999999999999999999"); len(page.Events) != 500 {
		t.Errorf("a limit beyond any integer: %d rows", len(page.Events))
	}
	page := get[api.EventPage](t, a, "/v1/sessions/s/events?after=777&whatever=1")
	if page.Next != nil || page.Events == nil || len(page.Events) != 0 {
		t.Errorf("behind the end: %+v", page)
	}
}

// Messages of 7 MiB: a page holds 32 MiB and the rest of one message.
func TestLargeEventsMakeShortPages(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	body := []byte(`{"x":"` + strings.Repeat("x", 7<<20) + `"}`)
	const total, most = 12, (32 + 8) << 20
	for range total {
		f.put("default", "s", events.MessageAppended, body)
	}
	seen := int64(0)
	for next := new(int64); next != nil; {
		w := ask(a, http.MethodGet, fmt.Sprintf("/v1/sessions/s/events?limit=500&after=%d", *next), "")
		var page api.EventPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Body.Len() > most {
			t.Fatalf("page of %d bytes, %v", w.Body.Len(), err)
		}
		for _, e := range page.Events {
			if seen++; e.Seq != seen {
				t.Fatalf("row %d has seq %d", seen, e.Seq)
			}
		}
		next = page.Next
	}
	fed := 0
	for cursor := ""; ; {
		w := ask(a, http.MethodGet, "/v1/feed?limit=500&after="+cursor, "")
		var page api.FeedPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Body.Len() > most {
			t.Fatalf("page of %d bytes, %v", w.Body.Len(), err)
		}
		if len(page.Events) == 0 {
			break
		}
		fed, cursor = fed+len(page.Events), page.Cursor
	}
	if seen != total || fed != total {
		t.Errorf("%d rows, %d of the feed", seen, fed)
	}
}

func TestSessionPages(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	for i := range 25 {
		f.put("default", fmt.Sprintf("k/%02d é", i), events.MessageAppended, []byte(`{}`))
		f.put("other", fmt.Sprintf("o/%02d", i), events.MessageAppended, []byte(`{}`))
	}
	var keys []string
	for after := ""; ; {
		page := get[api.SessionPage](t, a, "/v1/sessions?limit=10&after="+url.QueryEscape(after))
		for _, s := range page.Sessions {
			keys = append(keys, s.SessionKey)
			if s.Head != 1 || s.Epoch != 1 || s.Tokens != 7 || s.Debt != 5 {
				t.Fatalf("row %+v", s)
			}
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	if len(keys) != 25 || keys[24] != "k/24 é" {
		t.Errorf("keys %q", keys)
	}
	if w := ask(newAPI(t, newFake(), nil), http.MethodGet, "/v1/sessions", ""); strings.TrimSpace(w.Body.String()) != `{"sessions":[],"next":null}` {
		t.Errorf("nothing: %s", w.Body)
	}
	d := get[api.SessionDetail](t, a, "/v1/sessions/k%2F00%20%C3%A9")
	if d.Compactions != 3 || d.Debt != 5 || len(d.Attempts) != 1 || d.Attempts[0].Error != "boom" {
		t.Errorf("detail %+v", d)
	}
}

func TestFeedPages(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	start := get[api.FeedPage](t, a, "/v1/feed").Cursor
	if start == "" {
		t.Fatal("an empty page has no cursor")
	}
	for i := range 30 {
		f.put("default", fmt.Sprintf("k%d", i%3), events.MessageAppended, fmt.Appendf(nil, `{"n":%d}`, i))
	}
	n, cursor := 0, start
	for {
		page := get[api.FeedPage](t, a, "/v1/feed?limit=7&after="+cursor)
		cursor = page.Cursor
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			if string(e.Message) != fmt.Sprintf(`{"n":%d}`, n) || e.SessionKey != fmt.Sprintf("k%d", n%3) {
				t.Fatalf("event %d is %+v", n, e)
			}
			n++
		}
	}
	if again := get[api.FeedPage](t, a, "/v1/feed?after="+cursor).Cursor; n != 30 || again != cursor {
		t.Errorf("%d events, cursor %s then %s", n, cursor, again)
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	f.put("default", "s", events.MessageAppended, []byte(`{}`))
	if w := ask(a, http.MethodGet, "/v1/sessions/s/summaries", ""); strings.TrimSpace(w.Body.String()) != `{"summaries":[]}` {
		t.Errorf("none: %s", w.Body)
	}
	for i := range 450 { // more than one read of them
		b, err := json.Marshal(events.SummaryBody{
			Text: fmt.Sprintf("<sum> %d", i), Level: 1, Sources: []events.Range{{From: 1, To: 3}, {From: 9, To: 9}},
			Covers: []events.Range{{From: 1, To: 3}, {From: 9, To: 9}}, CoveredTokens: 40, Tokens: 4, SourceTokens: 40,
		})
		if err != nil {
			t.Fatal(err)
		}
		f.put("default", "s", events.SummaryCreated, b)
	}
	top := f.put("default", "s", events.SummaryCreated, []byte(`{"text":"top","level":2,"children":[2,3]}`))
	f.live = []events.LiveSummary{{Seq: top}}

	list := get[api.SummaryList](t, a, "/v1/sessions/s/summaries").Summaries
	if len(list) != 451 || list[0].ID != 2 || list[0].Text != "<sum> 0" || list[0].Live || !list[450].Live || list[450].ID != top || list[450].Level != 2 {
		t.Errorf("%d summaries, first %+v, last %+v", len(list), list[0], list[len(list)-1])
	}
	one := get[api.SummaryRow](t, a, "/v1/sessions/s/summaries/2")
	if diff := cmp.Diff(list[0], one); diff != "" {
		t.Error(diff)
	}
	sources := get[api.SourceList](t, a, "/v1/sessions/s/summaries/2/sources").Sources
	want := []api.SourceRow{{Kind: "event", Seq: 1}, {Kind: "event", Seq: 2}, {Kind: "event", Seq: 3}, {Kind: "event", Seq: 9}}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Error(diff)
	}
	sources = get[api.SourceList](t, a, fmt.Sprintf("/v1/sessions/s/summaries/%d/sources", top)).Sources
	if diff := cmp.Diff([]api.SourceRow{{Kind: "summary", ID: 2}, {Kind: "summary", ID: 3}}, sources); diff != "" {
		t.Error(diff)
	}
	// A message's seq is no summary's id.
	if w := ask(a, http.MethodGet, "/v1/sessions/s/summaries/1", ""); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

func TestEventsOfSomeTypes(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	types := []events.Type{events.MessageAppended, events.TurnCompleted, events.MessageAppended, events.EpochRotated, events.TurnCommitted}
	for i := range 500 {
		f.put("default", "s", types[i%len(types)], fmt.Appendf(nil, `{"n":%d}`, i+1))
	}
	for _, limit := range []int{1, 7, 100, 200, 500} {
		var seqs []int64
		for after := int64(0); ; {
			page := get[api.EventPage](t, a, fmt.Sprintf("/v1/sessions/s/events?type=epoch.rotated,%%20turn.completed,epoch.rotated&limit=%d&after=%d", limit, after))
			for _, e := range page.Events {
				if e.Type != "epoch.rotated" && e.Type != "turn.completed" {
					t.Fatalf("limit %d: a row is %+v", limit, e)
				}
				seqs = append(seqs, e.Seq)
			}
			if page.Next == nil {
				break
			}
			after = *page.Next
		}
		want := 200
		if len(seqs) != want || seqs[0] != 2 || seqs[1] != 4 || !slices.IsSorted(seqs) {
			t.Errorf("limit %d: %d rows, %v …", limit, len(seqs), seqs[:min(5, len(seqs))])
		}
	}
	if page := get[api.EventPage](t, a, "/v1/sessions/s/events?type=forked"); len(page.Events) != 0 || page.Next != nil {
		t.Errorf("of a type that is not there: %+v", page)
	}
}

func TestSessionsByAPartOfTheirKey(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	for _, key := range []string{"agent:one:discord", "agent:one:slack", "agent:two:Discord", "100%_x", "discord"} {
		f.put("default", key, events.MessageAppended, []byte(`{}`))
	}
	for holding, want := range map[string][]string{
		"discord": {"agent:one:discord", "agent:two:Discord", "discord"}, "ONE": {"agent:one:discord", "agent:one:slack"}, "%": {"100%_x"}, "none": nil,
	} {
		var got []string
		for after := ""; ; {
			page := get[api.SessionPage](t, a, "/v1/sessions?limit=1&keyContains="+url.QueryEscape(holding)+"&after="+url.QueryEscape(after))
			for _, s := range page.Sessions {
				got = append(got, s.SessionKey)
			}
			if page.Next == nil {
				break
			}
			after = *page.Next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", holding, diff)
		}
	}
}

func TestTheNewestOfTheFeed(t *testing.T) {
	t.Parallel()
	f := newFake()
	a := newAPI(t, f, nil)
	if page := get[api.FeedPage](t, a, "/v1/feed?latest=3"); len(page.Events) != 0 {
		t.Errorf("of nothing: %+v", page)
	}
	for i := range 20 {
		f.put("default", "s", events.MessageAppended, fmt.Appendf(nil, `{"n":%d}`, i+1))
	}
	page := get[api.FeedPage](t, a, "/v1/feed?latest=3")
	if len(page.Events) != 3 || page.Events[0].Seq != 18 || page.Events[2].Seq != 20 {
		t.Errorf("the newest three: %+v", page.Events)
	}
	f.put("default", "s", events.MessageAppended, []byte(`{"n":21}`))
	if next := get[api.FeedPage](t, a, "/v1/feed?after="+page.Cursor); len(next.Events) != 1 || next.Events[0].Seq != 21 {
		t.Errorf("behind them: %+v", next.Events)
	}
	if page := get[api.FeedPage](t, a, "/v1/feed?latest=99999"); len(page.Events) != 21 {
		t.Errorf("all: %d", len(page.Events))
	}
}

func TestNodePages(t *testing.T) {
	t.Parallel()
	console := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "console at ", r.URL.Path) })
	_, a := withSession(t, func(c *api.Config) { c.Console, c.Version = console, "v9" })
	engines := get[api.EngineList](t, a, "/v1/engines").Engines
	if len(engines) != 1 || engines[0].ID != "fake" || !engines[0].OwnsCompaction || engines[0].Slot == "" {
		t.Errorf("engines %+v", engines)
	}
	if h := get[api.Liveness](t, a, "/healthz"); h.Status != "ok" || h.Version != "v9" {
		t.Errorf("health %+v", h)
	}
	doc, err := api.OpenAPI(api.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(a, http.MethodGet, "/openapi.json", ""); w.Header().Get("Content-Type") != "application/json" || w.Body.String() != string(doc) {
		t.Error("another document is served than the committed one")
	}
	page := ask(a, http.MethodGet, "/docs", "")
	for _, want := range []string{"/v1/sessions/{key}/ingest", "IngestParams", "<code>stale-head</code>", "8 MiB"} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("docs lack %s", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "//unpkg", "cdn"} {
		if strings.Contains(page.Body.String(), bad) {
			t.Errorf("docs hold %s", bad)
		}
	}
	if w := ask(a, http.MethodGet, "/", ""); w.Code != 307 || w.Header().Get("Location") != "/console/" {
		t.Errorf("/: %d %s", w.Code, w.Header().Get("Location"))
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} { // what the console does not take it refuses itself
		w := ask(a, method, "/console/x", "")
		if w.Body.String() != "console at /console/x" || w.Header().Get("X-Content-Type-Options") == "" || w.Header().Get("X-Request-ID") == "" {
			t.Errorf("console: %s %v", w.Body, w.Header())
		}
	}
	_, bare := withSession(t, nil)
	if w := ask(bare, http.MethodGet, "/", ""); w.Header().Get("Location") != "/docs" {
		t.Errorf("/ without a console: %s", w.Header().Get("Location"))
	}
}
