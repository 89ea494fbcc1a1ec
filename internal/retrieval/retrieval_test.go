package retrieval_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	t       testing.TB
	store   *store.Store
	engine  *engine.Lossless
	indexer *retrieval.Indexer
	*retrieval.Searcher
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupOn(t, store.Config{URL: testdb.New(t)})
}

func setupOn(t testing.TB, cfg store.Config) *bundle {
	t.Helper()
	st, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	e := engine.NewLossless(engine.Config{Log: st})
	t.Cleanup(func() {
		if err := e.Dispose(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	x := retrieval.NewIndexer(st, nil)
	return &bundle{t: t, store: st, engine: e, indexer: x, Searcher: retrieval.NewSearcher(st, x)}
}

func on(tenant, key string) contextengine.Session {
	return contextengine.Session{Tenant: tenant, SessionKey: key}
}

// say ingests plain messages of a user.
func (b *bundle) say(key string, texts ...string) {
	b.t.Helper()
	raws := make([]string, len(texts))
	for i, text := range texts {
		raw, err := json.Marshal(map[string]string{"role": "user", "content": text})
		if err != nil {
			b.t.Fatal(err)
		}
		raws[i] = string(raw)
	}
	b.ingest("t", key, raws...)
}

func (b *bundle) ingest(tenant, key string, raws ...string) {
	b.t.Helper()
	p := contextengine.IngestBatchParams{Session: on(tenant, key)}
	for _, r := range raws {
		p.Messages = append(p.Messages, json.RawMessage(r))
	}
	if _, err := b.engine.IngestBatch(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) find(r retrieval.Request) retrieval.Answer {
	b.t.Helper()
	if r.Tenant == "" {
		r.Tenant = "t"
	}
	for {
		a, err := b.Search(b.t.Context(), r)
		if err != nil {
			b.t.Fatalf("%q: %v", r.Query, err)
		}
		// Other tests' transactions hold the feed's horizon back for a moment.
		if a.Current {
			return a
		}
	}
}

// places are the hits as key/seq.
func places(a retrieval.Answer) []string {
	out := []string{}
	for _, h := range a.Hits {
		out = append(out, fmt.Sprintf("%s/%d", h.SessionKey, h.Seq))
	}
	return out
}

func (b *bundle) want(r retrieval.Request, want ...string) {
	b.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, places(b.find(r))); diff != "" {
		b.t.Errorf("%q (-want +got):\n%s", r.Query, diff)
	}
}

func TestWhatWasJustSaidIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "Run chat-send with -rf on a|b in 38.101", "静默 播客 飞书 한국어 🔥", "nothing of it")
	for _, q := range []string{"chat-send", "-rf", "a|b", "38.101", `"with -rf"`, `"with -rf`, "run* chat", "RUN"} {
		b.want(retrieval.Request{Query: q}, "a/1")
	}
	for _, q := range []string{"静默", "静", "播客", "飞书", "한국", "🔥", "静默 🔥"} {
		b.want(retrieval.Request{Query: q}, "a/2")
	}
	b.want(retrieval.Request{Query: "静默 -rf"})
	b.say("a", "and later chat-send")
	a := b.find(retrieval.Request{Query: "chat-send", Sort: retrieval.SortRecent})
	if diff := cmp.Diff([]string{"a/4", "a/1"}, places(a)); diff != "" {
		t.Error(diff)
	}
	h := a.Hits[1]
	if got := h.Snippet.Text[h.Snippet.Marks[0].From:h.Snippet.Marks[0].To]; got != "chat-send" || !h.Active {
		t.Errorf("marked %q, active %v", got, h.Active)
	}
}

func TestKindsRolesToolsAndTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("t", "a",
		`{"role":"user","content":"find the marker","timestamp":1700000000000}`,
		`{"role":"assistant","content":"looking for the marker","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"grep marker\\nfile\"}"}}]}`,
		`{"role":"tool","tool_call_id":"c1","content":"marker found\u0000 at line 3"}`,
		`{"role":"user","content":"\ud800 marker alone"}`,
	)
	for _, tc := range []struct {
		r    retrieval.Request
		want []string
	}{
		{retrieval.Request{}, []string{"a/4", "a/3", "a/2", "a/1"}},
		{retrieval.Request{Kinds: []store.SearchKind{store.SearchCall}}, []string{"a/2"}},
		{retrieval.Request{Kinds: []store.SearchKind{store.SearchResult}}, []string{"a/3"}},
		{retrieval.Request{Roles: []message.Role{message.User}}, []string{"a/4", "a/1"}},
		{retrieval.Request{Tool: "bash"}, []string{"a/3", "a/2"}},
		{retrieval.Request{Tool: "other"}, nil},
		{retrieval.Request{Until: time.UnixMilli(1700000000001)}, []string{"a/1"}},
		{retrieval.Request{Since: time.UnixMilli(1700000000001)}, []string{"a/4", "a/3", "a/2"}},
		{retrieval.Request{Epoch: 2}, nil},
		{retrieval.Request{SessionKey: "a"}, []string{"a/4", "a/3", "a/2", "a/1"}},
		{retrieval.Request{SessionKey: "none"}, nil},
	} {
		tc.r.Query, tc.r.Sort = "marker", retrieval.SortRecent
		b.want(tc.r, tc.want...)
	}
	// What was said and what was called are parts of one message.
	b.want(retrieval.Request{Query: "looking grep file"}, "a/2")
	b.want(retrieval.Request{Query: "bash"}, "a/2")
}

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ingest("one", "k", `{"role":"user","content":"secret of one"}`)
	b.ingest("two", "k", `{"role":"user","content":"nothing"}`)
	b.want(retrieval.Request{Tenant: "two", Query: "secret"})
	b.want(retrieval.Request{Tenant: "two", Query: "secret", Regex: true})
	b.want(retrieval.Request{Tenant: "two", Query: "secret", Match: retrieval.MatchAny})
	b.want(retrieval.Request{Tenant: "one", Query: "secret"}, "k/1")
	s, err := b.store.Session(t.Context(), "one", "k")
	if err != nil {
		t.Fatal(err)
	}
	b.want(retrieval.Request{Tenant: "two", Query: "secret", Scopes: []store.SearchScope{{SID: s.SID}}})
}

// Texts of more different words than one vector of Postgres's holds (1 MB), of
// each kind that others reported.
func TestTextsOfMoreWordsThanAVectorHoldsAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 700_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	base64ed := base64.StdEncoding.EncodeToString(noise)
	var words, han strings.Builder
	for i := range 120_000 {
		fmt.Fprintf(&words, "u%05xn ", i)
	}
	for han.Len() < 1_500_000 {
		han.WriteRune(rune(0x4e00 + random.IntN(0x9fa5-0x4e00)))
	}
	b.say("words", words.String())
	b.say("han", han.String())
	b.say("random", strings.Join(chunks(base64ed, 12), " "))
	b.say("after", "what comes next")
	b.want(retrieval.Request{Query: "u00000n u1d4bfn"}, "words/1")
	b.want(retrieval.Request{Query: chunks(base64ed, 12)[70_000]}, "random/1")
	text := []rune(han.String())
	for _, at := range []int{0, len(text) / 2, len(text) - 6} {
		b.want(retrieval.Request{Query: string(text[at : at+6])}, "han/1")
	}
	b.want(retrieval.Request{Query: "comes next"}, "after/1")
}

// chunks are the parts of a text of n bytes each.
func chunks(text string, n int) (out []string) {
	for len(text) >= n {
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

func TestAMessageWithANULIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "what's the \x00 weather", "half\x00open", `six characters \u0000 of it`)
	b.ingest("t", "a", `{"role":"user","content":"lone \ud99c surrogate"}`)
	b.say("a", "next")
	b.want(retrieval.Request{Query: "weather"}, "a/1")
	b.want(retrieval.Request{Query: "half open"}, "a/2")
	b.want(retrieval.Request{Query: "characters"}, "a/3")
	b.want(retrieval.Request{Query: "surrogate"}, "a/4")
	b.want(retrieval.Request{Query: "next"}, "a/5")
}

func TestWithoutAScopeTheWholeTenantIsSearched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("stale", "marker of long ago")
	if _, err := b.engine.Reset(t.Context(), on("t", "stale"), nil, "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.Fork(t.Context(), on("t", "stale"), "tip", nil); err != nil {
		t.Fatal(err)
	}
	b.say("tip", "marker of today")
	b.say("other", "marker of another")
	b.ingest("u", "tip", `{"role":"user","content":"marker of a stranger"}`)
	b.want(retrieval.Request{Query: "marker", Sort: retrieval.SortRecent}, "other/1", "tip/2", "stale/1")
	b.want(retrieval.Request{Query: "marker", Sort: retrieval.SortRecent, SessionKey: "tip"}, "tip/2", "stale/1")
	b.want(retrieval.Request{Query: "marker", SessionKey: "tip", ActiveOnly: true}, "tip/2")
}

func TestLongTextsAreFoundInEveryPart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var long strings.Builder
	long.WriteString("alphastart ")
	for i := range 40_000 {
		fmt.Fprintf(&long, "w%dx ", i)
	}
	long.WriteString("omegaend")
	b.say("a", long.String(), "alphastart alone", strings.Repeat("静默播客飞书中文全文索引", 30_000), strings.Repeat("a1B2", 300_000))
	b.want(retrieval.Request{Query: "alphastart omegaend"}, "a/1")
	b.want(retrieval.Request{Query: "alphastart omegaend", Sort: retrieval.SortRecent}, "a/1")
	b.want(retrieval.Request{Query: "w20000x w39999x"}, "a/1")
	b.want(retrieval.Request{Query: "全文索引"}, "a/3")
	b.want(retrieval.Request{Query: "omega.nd", Regex: true}, "a/1")
	b.want(retrieval.Request{Query: "w39999x", Match: retrieval.MatchAny, Limit: 1}, "a/1")
}

func TestPagesHaveEveryHitOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	texts := make([]string, 1500)
	for i := range texts {
		texts[i] = "needle " + strings.Repeat("needle ", i%5) + strings.Repeat("hay ", i%7)
	}
	b.say("a", texts...)
	for _, r := range []retrieval.Request{
		{Query: "needle"},
		{Query: "needle", Sort: retrieval.SortRecent},
		{Query: "needle", Match: retrieval.MatchAny},
		{Query: "nee[d]le", Regex: true},
	} {
		r.Limit = 350
		seen := map[string]bool{}
		for page := 0; ; page++ {
			a := b.find(r)
			for _, p := range places(a) {
				if seen[p] {
					t.Errorf("%+v: %s comes twice", r, p)
				}
				seen[p] = true
			}
			if page == 1 {
				b.say("b", "needle needle needle needle") // is for the next search
			}
			if a.Next == "" || page > 10 {
				break
			}
			r.After = a.Next
		}
		least := 1500
		if r.Match == retrieval.MatchAny {
			least = 600 // the best and their neighbours
		}
		if len(seen) < least || len(seen) > 1500+3 {
			t.Errorf("%+v: %d hits", r, len(seen))
		}
		r.Query = "other"
		if _, err := b.Search(t.Context(), withTenant(r)); r.After != "" && !isInvalid(err) {
			t.Errorf("a cursor of another search: %v", err)
		}
	}
}

func withTenant(r retrieval.Request) retrieval.Request { r.Tenant = "t"; return r }

func isInvalid(err error) bool {
	_, ok := errors.AsType[*contextengine.InvalidError](err)
	return ok
}

func TestBetterHitsComeFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "error "+strings.Repeat("filler text ", 60), "error error error in module", "no such thing", "some error here and there")
	b.want(retrieval.Request{Query: "error"}, "a/2", "a/4", "a/1")
	b.say("b", strings.Fields(strings.Repeat("common ", 50))...)
	b.say("b", "common rareword here", "and so on", "it goes", "just rareword here")
	b.want(retrieval.Request{Query: "what about the common rareword?", Match: retrieval.MatchAny, Limit: 1}, "b/51")
}

func TestResetAndRewindAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "before marker")
	if _, err := b.engine.Reset(t.Context(), on("t", "a"), nil, ""); err != nil {
		t.Fatal(err)
	}
	b.say("a", "after marker")
	b.say("b", "other marker")
	all := b.find(retrieval.Request{Query: "marker"})
	active := map[string]bool{}
	for _, h := range all.Hits {
		active[fmt.Sprintf("%s/%d", h.SessionKey, h.Seq)] = h.Active
	}
	if diff := cmp.Diff(map[string]bool{"a/1": false, "a/3": true, "b/1": true}, active); diff != "" {
		t.Error(diff)
	}
	recent := retrieval.Request{Query: "marker", Sort: retrieval.SortRecent, ActiveOnly: true}
	b.want(recent, "b/1", "a/3")
	recent.SessionKey = "a"
	b.want(recent, "a/3")
	recent.Regex = true
	b.want(recent, "a/3")
	recent.SessionKey = ""
	b.want(recent, "b/1", "a/3")
}

func TestSummariesAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 30 {
		b.say("a", fmt.Sprintf("please look at /srv/app/file%d.go and tell. ", i)+strings.Repeat("The matter is long. ", 60))
		b.ingest("t", "a", fmt.Sprintf(`{"role":"assistant","content":%q}`, strings.Repeat(fmt.Sprintf("I did look at file%d. ", i), 40)))
	}
	budget := 4000
	res, err := b.engine.Compact(t.Context(), contextengine.CompactParams{Session: on("t", "a"), TokenBudget: &budget, Force: true})
	if err != nil || !res.Compacted {
		t.Fatalf("%+v %v", res, err)
	}
	a := b.find(retrieval.Request{Query: "look", Kinds: []store.SearchKind{store.SearchSummary}})
	if len(a.Hits) == 0 || a.Hits[0].Kind != store.SearchSummary {
		t.Errorf("no summary among %+v", places(a))
	}
	b.want(retrieval.Request{Query: "file0.go", Kinds: []store.SearchKind{store.SearchMessage}}, "a/1")
}

func TestBadQueriesAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "text")
	for _, r := range []retrieval.Request{
		{},
		{Query: "\x00"},
		{Query: "\xff"},
		{Query: strings.Repeat("a ", 3000)},
		{Query: strings.Repeat("a", 5000)},
		{Query: "(", Regex: true},
		{Query: "", Regex: true},
		{Query: "a{1001}", Regex: true},
		{Query: strings.Repeat("a", 1001), Regex: true},
		{Query: "a", After: "x"},
		{Query: "a", After: "AQAA"},
		{Query: `(?P<x>\C)`, Regex: true},
	} {
		if _, err := b.Search(t.Context(), withTenant(r)); !isInvalid(err) {
			t.Errorf("%.30q: %v", r.Query, err)
		}
	}
	for _, q := range []string{"'", `\`, "'&|!:*()<->", "a:*", "te*", `\'`, "$1", "%", "a\x00b", `"\"`, strings.Repeat("x", 4000), "(((", "&", "!a", "t\u200bext"} {
		b.find(retrieval.Request{Query: q})
		b.find(retrieval.Request{Query: q, Match: retrieval.MatchAny})
		b.find(retrieval.Request{Query: q, Sort: retrieval.SortRecent})
	}
	for _, q := range []string{"a*", "^", `\x00`, ".*", "(?s).*", "t(e|x)+t?"} {
		b.find(retrieval.Request{Query: q, Regex: true})
	}
}

func TestTheIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "one marker", "two")
	b.say("b", "marker")
	r := retrieval.Request{Query: "marker", Sort: retrieval.SortRecent}
	b.want(r, "b/1", "a/1")
	told := 0
	if err := b.indexer.Rebuild(t.Context(), "", func(_ string, n int) { told = n }); err != nil || told != 3 {
		t.Fatalf("%d events, %v", told, err)
	}
	b.want(r, "b/1", "a/1")
}

func TestManyIndexersWriteOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	texts := make([]string, 700)
	for i := range texts {
		texts[i] = fmt.Sprintf("marker %d", i)
	}
	b.say("a", texts...)
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			x := retrieval.NewIndexer(b.store, nil)
			for {
				more, err := x.Once(t.Context())
				if err != nil || !more {
					errs <- err
					return
				}
			}
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	b.find(retrieval.Request{Query: "marker"})
	s, err := b.store.Session(t.Context(), "t", "a")
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.store.SearchState(t.Context(), "t", []uuid.UUID{s.SID})
	if err != nil || state.Parts != 700 || state.Seq != 700 || state.Behind {
		t.Errorf("%+v %v", state, err)
	}
}

func TestAForkFindsWhatItInherited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("parent", "marker one", "marker two")
	if _, err := b.engine.Fork(t.Context(), on("t", "parent"), "child", nil); err != nil {
		t.Fatal(err)
	}
	b.say("parent", "marker later")
	b.say("child", "marker own")
	r := retrieval.Request{Query: "marker", Sort: retrieval.SortRecent, SessionKey: "child"}
	b.want(r, "child/2", "parent/2", "parent/1")
	for _, h := range b.find(r).Hits {
		if !h.Active {
			t.Errorf("%s/%d is not on the path", h.SessionKey, h.Seq)
		}
	}
	if _, err := b.engine.Reset(t.Context(), on("t", "child"), nil, ""); err != nil {
		t.Fatal(err)
	}
	b.want(r, "child/2", "parent/2", "parent/1")
	r.ActiveOnly = true
	b.want(r)
	r.SessionKey = "parent"
	b.want(r, "parent/3", "parent/2", "parent/1")
}

func TestAQuestionFindsWhatStandsNextToItsWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "secret falcon before the reset")
	if _, err := b.engine.Reset(t.Context(), on("t", "a"), nil, ""); err != nil {
		t.Fatal(err)
	}
	b.ingest("t", "a",
		`{"role":"user","name":"Ada","content":"where did we adopt the falcon?"}`, `{"role":"assistant","content":"In Oslo, in 2019."}`,
		`{"role":"user","content":"thanks"}`, `{"role":"user","content":"hidden falcon","excludeFromContext":true}`,
	)
	b.say("other", "falcon of another session")
	b.find(retrieval.Request{Query: "falcon"}) // the index is up to date now
	s, err := b.store.Session(t.Context(), "t", "a")
	if err != nil {
		t.Fatal(err)
	}
	states, err := b.store.SearchPaths(t.Context(), "t", []uuid.UUID{s.SID})
	if err != nil {
		t.Fatal(err)
	}
	r := retrieval.Request{
		Query: "So, Ada, where was the falcon adopted?", Match: retrieval.MatchAny,
		Scopes: retrieval.PathScopes(s.SID, states[s.SID]), Without: message.Hidden,
	}
	b.want(r, "a/3", "a/4", "a/5")
	if marks := b.find(r).Hits[1].Snippet.Marks; len(marks) > 0 {
		t.Errorf("the answer has no word of the question, but the marks %v", marks)
	}
}
