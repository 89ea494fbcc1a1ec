package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// searcher remembers what it was asked and answers the same every time.
type searcher struct {
	asked  retrieval.Request
	answer retrieval.Answer
}

func (s *searcher) Search(_ context.Context, r retrieval.Request) (retrieval.Answer, error) {
	s.asked = r
	return s.answer, nil
}

func TestSearchParameters(t *testing.T) {
	t.Parallel()
	s := &searcher{}
	a := newAPI(t, newFake(), func(c *api.Config) { c.Search = s })
	for query, want := range map[string]retrieval.Request{
		"q=x": {Query: "x", Limit: 100},
		"q=a%7Cb&sessionKey=s&role=user,toolResult&role=note&kind=summary&tool=bash&epoch=3&since=2026-01-02&until=1767312000000&sort=recent&match=any&limit=9999&path=active&after=c": {
			Query: "a|b", SessionKey: "s", Roles: []message.Role{message.User, message.Result, message.Note}, Kinds: []store.SearchKind{store.SearchSummary},
			Tool: "bash", Epoch: 3, Since: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Until: time.UnixMilli(1767312000000),
			Sort: retrieval.SortRecent, Match: retrieval.MatchAny, Limit: 500, ActiveOnly: true, After: "c",
		},
		"q=x&regex=true&since=2026-01-02T03:04:05%2B01:00": {Query: "x", Regex: true, Limit: 100, Since: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)},
	} {
		if w := ask(a, http.MethodGet, "/v1/search?"+query, ""); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		want.Tenant = "default"
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, field := range map[string]string{
		"q=x&role=nobody": "role", "q=x&kind=x": "kind", "q=x&since=yesterday": "since", "q=x&since=2026": "since", "q=x&until=-1": "until", "q=x&epoch=x": "epoch",
		"q=x&sort=x": "sort", "q=x&match=x": "match", "q=x&path=x": "path", "q=x&regex=1": "regex", "q=x&limit=0": "limit",
		"q=x&sessionKey=%00": "sessionKey", "q=x&tool=%ff": "tool", "q=x&sessionKey=" + strings.Repeat("k", 513): "sessionKey",
	} {
		w := ask(a, http.MethodGet, "/v1/search?"+query, "")
		if _, p := problem(t, w); w.Code != 422 || p.Field != field {
			t.Errorf("%s: %d %+v", query, w.Code, p)
		}
	}
}

func TestSearchAnswer(t *testing.T) {
	t.Parallel()
	s := &searcher{answer: retrieval.Answer{
		Next: "cursor", Current: true, IndexedAt: time.UnixMilli(1767312000000),
		Hits: []retrieval.Hit{
			{SessionKey: "s", Seq: 7, Kind: store.SearchMessage, Role: message.User, Score: 1.5, Snippet: search.Snippet{Text: "…静默 x", Marks: []search.Span{{From: 3, To: 9}}}},
			{SessionKey: "s", Seq: 9, Kind: store.SearchSummary, Active: true},
		},
	}}
	a := newAPI(t, newFake(), func(c *api.Config) { c.Search = s })
	page := get[api.SearchPage](t, a, "/v1/search?q=x")
	if page.Next == nil || *page.Next != "cursor" || !page.Index.Current || len(page.Hits) != 2 {
		t.Fatalf("%+v", page)
	}
	h := page.Hits[0]
	if h.Role != "user" || h.Kind != "message" || page.Hits[1].Role != "summary" || page.Hits[1].Kind != "summary" {
		t.Errorf("%+v", page.Hits)
	}
	if runes := []rune(h.Snippet); string(runes[h.Marks[0].Start:h.Marks[0].End]) != "静默" {
		t.Errorf("marks %+v of %q", h.Marks, h.Snippet)
	}
	if w := ask(newAPI(t, newFake(), nil), http.MethodGet, "/v1/search?q=x", ""); w.Code != http.StatusNotFound {
		t.Errorf("a node without search: %d", w.Code)
	}
}
