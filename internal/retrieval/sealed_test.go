package retrieval_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

// A search that names an encrypted session finds what it would in a plain one, in
// the same order and with the same snippets: it reads the log instead of an index.
func TestAnEncryptedSessionIsSearchedAsAPlainOne(t *testing.T) {
	t.Parallel()
	cfg := store.Config{URL: testdb.New(t)}
	plain, sealed := setupOn(t, cfg), setupOn(t, storetest.Encrypt(t, cfg))
	files := map[string]string{
		"pi": "pi/large-session-start.jsonl", "openclaw": "openclaw/event-materials.jsonl", "claude": "claude-code/viewer-agents.jsonl",
	}
	for _, b := range []*bundle{plain, sealed} {
		tenant := "t"
		if b == sealed {
			tenant = "sealed"
		}
		for key, file := range files {
			p := contextengine.IngestBatchParams{Session: on(tenant, key), Messages: readMessages(t, "../../test/transcripts/testdata/"+file)}
			if _, err := b.engine.IngestBatch(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if _, err := b.engine.Compact(t.Context(), contextengine.CompactParams{Session: on(tenant, key), TokenBudget: new(20000), Force: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.engine.Fork(t.Context(), on(tenant, key), key+"-fork", nil); err != nil {
				t.Fatal(err)
			}
			b.ingest(tenant, key+"-fork", `{"role":"user","content":"what did the session manager resume, and résumé 静默 why?"}`)
			if _, err := b.engine.Reset(t.Context(), on(tenant, key), nil, "new"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for a := plain.find(retrieval.Request{Query: "x"}); !a.Current; a = plain.find(retrieval.Request{Query: "x"}) {
		if t.Context().Err() != nil {
			t.Fatal("the index does not get current")
		}
	}
	compared := 0
	for _, r := range []retrieval.Request{
		{Query: "session"},
		{Query: "file content", Kinds: []store.SearchKind{store.SearchResult}},
		{Query: `"in the"`},
		{Query: "sess*"},
		{Query: "->"},
		{Query: "静"},
		{Query: "resume", Sort: retrieval.SortRecent},
		{Query: "the", Roles: []message.Role{message.User}},
		{Query: "file", Kinds: []store.SearchKind{store.SearchCall, store.SearchResult}, Tool: "read"},
		{Query: "decisions", Kinds: []store.SearchKind{store.SearchSummary}},
		{Query: "session", ActiveOnly: true},
		{Query: "how does the manager resume a session?", Match: retrieval.MatchAny},
		{Query: "how does the manager resume a session?", Match: retrieval.MatchAny, Sort: retrieval.SortRecent},
		{Query: `[Ss]ession\w+\(`, Regex: true},
		{Query: `no such thing \d{40}`, Regex: true},
		{Query: "notinanyofthem"},
	} {
		for _, key := range []string{"pi", "pi-fork", "openclaw", "openclaw-fork", "claude", "claude-fork"} {
			r.SessionKey, r.Limit = key, 7
			want, got := plain.pages(r, "t"), sealed.pages(r, "sealed")
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("%q in %s (plain -, encrypted +):\n%s", r.Query, key, diff)
			}
			compared += len(want)
		}
	}
	if compared < 350 {
		t.Errorf("only %d hits were compared", compared)
	}
}

// What is too long to be read for one search is looked at from its end on, and
// that is said.
func TestTheNewestOfALongEncryptedSessionIsSearched(t *testing.T) {
	t.Parallel()
	b := setupOn(t, storetest.Encrypt(t, store.Config{URL: testdb.New(t)}))
	for i := range 3 {
		texts := make([]string, 400)
		for n := range texts {
			texts[n] = fmt.Sprintf("needle %d of part %d", n, i)
		}
		b.say("s", texts...)
	}
	retrieval.SetShelfBytes(b.Searcher, 20_000)
	a := b.find(retrieval.Request{Query: "needle 7", SessionKey: "s", Limit: 10})
	if !a.Encrypted || len(a.Hits) != 1 || a.Hits[0].Seq != 808 {
		t.Errorf("left out %v, %+v", a.Encrypted, a.Hits)
	}
}

// shown is what of a hit does not tell the two apart.
type shown struct {
	Key, Tool, Snippet string
	Seq                int64
	Kind               store.SearchKind
	Active             bool
	Score              float64
	Marks              []search.Span
}

// pages are all hits of a request.
func (b *bundle) pages(r retrieval.Request, tenant string) []shown {
	b.t.Helper()
	var out []shown
	r.Tenant = tenant
	for {
		a, err := b.Search(b.t.Context(), r)
		if err != nil {
			b.t.Fatal(err)
		}
		if a.Encrypted || !a.Current {
			b.t.Errorf("%q: left out %v, current %v", r.Query, a.Encrypted, a.Current)
		}
		for _, h := range a.Hits {
			out = append(out, shown{h.SessionKey, h.Tool, h.Snippet.Text, h.Seq, h.Kind, h.Active, h.Score, h.Snippet.Marks})
		}
		if r.After = a.Next; r.After == "" {
			return out
		}
	}
}

func TestEncryptedSessionsAreNotIndexedAndThatIsSaid(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	cfg := store.Config{URL: url}
	plain, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	sealed, err := store.Open(t.Context(), storetest.Encrypt(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sealed.Close)
	for key, s := range map[string]*store.Store{"plain": plain, "sealed": sealed} {
		_, err := s.Append(t.Context(), &store.Item{Tenant: "t", SessionKey: key, Create: true, Events: []store.NewEvent{{
			Type: events.MessageAppended, Body: []byte(`{"role":"user","content":"pineapple"}`), Facts: message.Facts{Role: message.User, Tokens: 1},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	find := func(s *store.Store, key string) retrieval.Answer {
		t.Helper()
		a, err := retrieval.NewSearcher(s, retrieval.NewIndexer(s, nil)).Search(t.Context(), retrieval.Request{Tenant: "t", Query: "pineapple", SessionKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// Other tests' transactions hold the feed's horizon back for a moment. The one
	// who indexes needs no keys.
	for !find(plain, "").Current {
		if t.Context().Err() != nil {
			t.Fatal("the index does not get current")
		}
	}
	for key, want := range map[string]struct {
		hits      int
		encrypted bool
	}{"": {1, true}, "plain": {1, false}, "sealed": {1, false}} {
		if a := find(sealed, key); len(a.Hits) != want.hits || a.Encrypted != want.encrypted {
			t.Errorf("%q: %d hits, encrypted %v", key, len(a.Hits), a.Encrypted)
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var parts int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM search_parts`).Scan(&parts); err != nil || parts != 1 {
		t.Errorf("%d parts are indexed, %v", parts, err)
	}
}
