package api

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// Searcher answers searches.
type Searcher interface {
	Search(ctx context.Context, r retrieval.Request) (retrieval.Answer, error)
}

// SearchHit is a message or a summary that holds what was looked for.
type SearchHit struct {
	SessionKey string `json:"sessionKey"`
	Seq        int64  `json:"seq"`
	Role       string `json:"role" enum:"user,assistant,toolResult,system,note,summary,unknown"`
	Kind       string `json:"kind" enum:"message,toolResult,toolCall,summary"`
	// Tool is the tool of a call or a result, where it is known.
	Tool  string `json:"tool,omitempty"`
	Epoch int64  `json:"epoch"`
	// At is the message's own time where it has one, else when it was recorded.
	At time.Time `json:"at"`
	// Active hits are on the session's present path: no reset or rewind hides them.
	Active bool `json:"active"`
	// Snippet holds the matched text unbroken; Marks are the matches in it.
	Snippet string       `json:"snippet"`
	Marks   []SearchMark `json:"marks"`
	Score   float64      `json:"score"`
}

// SearchMark is a place in a snippet, in code points; End is not included.
type SearchMark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// SearchPage is a page of hits.
type SearchPage struct {
	Hits []SearchHit `json:"hits"`
	// Next is the next page's after; null on the last page.
	Next *string `json:"next"`
	// Partial: the time for a search was over; Next goes on where it stopped.
	Partial bool        `json:"partial"`
	Index   SearchIndex `json:"index"`
}

// SearchIndex tells how far the index is behind the log.
type SearchIndex struct {
	// Current: when the search began, all of the tenant's log was indexed.
	Current bool `json:"current"`
	// IndexedAt is when the index last moved.
	IndexedAt *time.Time `json:"indexedAt,omitempty"`
	// IndexedTo is the newest indexed seq, in a search of one session.
	IndexedTo int64 `json:"indexedTo,omitempty"`
	// Note says what was not searched: encrypted sessions that sessionKey does not name.
	Note string `json:"note,omitempty"`
}

func searchOperations() []*operation {
	op := get("/v1/search", "search", tagSearch, "Search messages, tool results, tool calls and summaries", serveSearch)
	op.description = "Finds what was compacted, reset or rewound too; `active` tells. Words and \"quoted phrases\" are all required, " +
		"every other sign is text, `word*` is a prefix. See docs/search.md."
	op.answer = of[SearchPage]()
	op.query = []queryParam{
		{name: "q", in: "query", doc: "What to look for; up to 4096 bytes."},
		{name: "regex", in: "query", doc: "`true`: `q` is an expression in the syntax of RE2, up to 1000 bytes. Hits come newest first."},
		{name: "match", in: "query", doc: "`all` (default): every word and phrase, as it stands. `any`: some of the words, in any of their English forms; for questions."},
		{name: "sessionKey", in: "query", doc: "Only this session."},
		{name: "role", in: "query", doc: "Only these roles, separated by commas: `user`, `assistant`, `toolResult`, `system`, `note`."},
		{name: "kind", in: "query", doc: "Only these kinds, separated by commas: `message`, `toolResult`, `toolCall`, `summary`."},
		{name: "tool", in: "query", doc: "Only calls and results of this tool."},
		{name: "epoch", in: "query", integer: true, least: 1, doc: "Only what was written in this epoch."},
		{name: "since", in: "query", doc: "Not before this time: RFC 3339, a date (UTC) or Unix milliseconds."},
		{name: "until", in: "query", doc: "Before this time, written as `since`."},
		{name: "path", in: "query", doc: "`all` (default), or `active`: only what is on the present path of its session."},
		{name: "sort", in: "query", doc: "`relevance` (default) or `recent`: newest first, in the order of the log."},
		{name: "after", in: "query", doc: "The `next` of an answer to the same search. Opaque."},
		limitParam(),
	}
	return []*operation{op}
}

func serveSearch(c *call) error {
	if c.api.cfg.Search == nil {
		return kindNotFound.problem("this node does not search")
	}
	q, err := c.parameters()
	if err != nil {
		return err
	}
	r, err := c.searchRequest(q)
	if err != nil {
		return err
	}
	a, err := c.api.cfg.Search.Search(c.ctx, r)
	if err != nil {
		return err
	}
	page := SearchPage{
		Hits: make([]SearchHit, len(a.Hits)), Partial: a.Partial,
		Index: SearchIndex{Current: a.Current, IndexedTo: a.IndexedTo},
	}
	if a.Next != "" {
		page.Next = &a.Next
	}
	if a.Encrypted {
		page.Index.Note = "encrypted sessions are not in the index and were not searched; a search of one session alone finds what is in it"
		if r.SessionKey != "" {
			page.Index.Note = "the session is encrypted and long: only the newest of it was searched"
		}
	}
	if !a.IndexedAt.IsZero() {
		at := a.IndexedAt.UTC()
		page.Index.IndexedAt = &at
	}
	for i := range a.Hits {
		page.Hits[i] = searchHit(&a.Hits[i])
	}
	return c.answer(&page)
}

func searchHit(h *retrieval.Hit) SearchHit {
	out := SearchHit{
		SessionKey: h.SessionKey, Seq: h.Seq, Role: roleName(h.Role), Kind: kindName(h.Kind), Tool: h.Tool, Epoch: h.Epoch,
		At: h.At.UTC(), Active: h.Active, Snippet: h.Snippet.Text, Score: h.Score, Marks: marksOf(h.Snippet),
	}
	if h.Kind == store.SearchSummary {
		out.Role = "summary"
	}
	return out
}

// marksOf counts in code points: bytes and UTF-16 differ between clients.
func marksOf(s search.Snippet) []SearchMark {
	out := make([]SearchMark, len(s.Marks))
	at, n := 0, 0
	upto := func(to int) int {
		n += utf8.RuneCountInString(s.Text[at:to])
		at = to
		return n
	}
	for i, m := range s.Marks {
		out[i].Start = upto(m.From)
		out[i].End = upto(m.To)
	}
	return out
}

func (c *call) searchRequest(q url.Values) (retrieval.Request, error) {
	r := retrieval.Request{
		Tenant: c.tenant, Query: q.Get("q"), SessionKey: q.Get("sessionKey"), Tool: q.Get("tool"),
		Match: retrieval.Match(q.Get("match")), Sort: retrieval.Sort(q.Get("sort")), After: q.Get("after"),
	}
	k := c.check()
	k.key("sessionKey", r.SessionKey)
	k.key("tool", r.Tool)
	if k.err != nil {
		return r, k.err
	}
	var err error
	oneOf := func(field string, allowed ...string) string {
		text := q.Get(field)
		if slices.Contains(allowed, text) {
			return text
		}
		if text != "" && err == nil {
			err = &contextengine.InvalidError{Field: field, Reason: "must be one of " + strings.Join(allowed, ", ")}
		}
		return ""
	}
	r.Regex = oneOf("regex", "true", "false") == "true"
	r.ActiveOnly = oneOf("path", "all", "active") == "active"
	oneOf("match", string(retrieval.MatchAll), string(retrieval.MatchAny))
	oneOf("sort", string(retrieval.SortRelevance), string(retrieval.SortRecent))
	if err != nil {
		return r, err
	}
	if r.Epoch, err = epochOf(q.Get("epoch")); err != nil {
		return r, err
	}
	if r.Since, err = instant("since", q.Get("since")); err != nil {
		return r, err
	}
	if r.Until, err = instant("until", q.Get("until")); err != nil {
		return r, err
	}
	if r.Roles, err = named("role", q["role"], searchRoles); err != nil {
		return r, err
	}
	if r.Kinds, err = named("kind", q["kind"], searchKinds); err != nil {
		return r, err
	}
	r.Limit, err = c.limit(q)
	return r, err
}

// named reads a list of words, separated by commas or given one by one.
func named[T any](field string, texts []string, known map[string]T) ([]T, error) {
	var out []T
	for _, text := range texts {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			v, ok := known[word]
			if !ok {
				return nil, &contextengine.InvalidError{Field: field, Reason: "some of " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")}
			}
			out = append(out, v)
		}
	}
	return out, nil
}

var searchRoles = map[string]message.Role{
	"user": message.User, "assistant": message.Assistant, "toolResult": message.Result, "tool": message.Result,
	"system": message.System, "note": message.Note,
}

var searchKinds = map[string]store.SearchKind{
	"message": store.SearchMessage, "toolResult": store.SearchResult, "toolCall": store.SearchCall, "summary": store.SearchSummary,
}

func kindName(k store.SearchKind) string {
	for name, v := range searchKinds {
		if v == k {
			return name
		}
	}
	return "message"
}

// epochOf reads an epoch; "" is any.
func epochOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, &contextengine.InvalidError{Field: "epoch", Reason: "must be an integer of 1 or more"}
	}
	return n, nil
}

// instant reads a time; "" is the zero time.
func instant(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	// A small number is a year or a typing error, no time in 1970.
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && (ms == 0 || ms >= 1e11) && ms < 1<<47 {
		return time.UnixMilli(ms), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 {
			return t, nil
		}
	}
	return time.Time{}, &contextengine.InvalidError{Field: field, Reason: "must be a time as in RFC 3339, a date, or Unix milliseconds"}
}
