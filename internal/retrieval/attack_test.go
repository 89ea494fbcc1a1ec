package retrieval_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/retrieval"
)

// Whatever is asked is answered or refused as invalid, in bounded time.
func TestAnyQueryIsSafe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaa! ", 900), "the of and", "\u202eabc\u202c \u2066x\u2069", "tail\ufffdend", "'quoted' \\ back & | ! <-> :*")
	var words strings.Builder
	for i := range 64 {
		fmt.Fprintf(&words, "w%d ", i)
	}
	for _, q := range []string{
		words.String(), words.String() + "more", strings.Repeat("x", 4096), strings.Repeat("x", 4097), strings.Repeat("静", 1365),
		strings.Repeat("a*", 60), strings.Repeat("\" ", 500), strings.Repeat("-", 4096), "a\x00b", "\x00", "\xff\xfe", "\xed\xa0\x80", "\u202e", "\u202eabc", "\u2066x\u2069", "tail\ufffdend",
		"the of and", "?!", "...", "' & '", `\`, `'\'`, "a:*", "a & !b", "<->", ":A", "()", "%", "_", "(a|b)",
		"(a+)+$", "(a|a)*b", "(a{1,30}){1,30}c", "((((a*)*)*)*)*b", "[", "(?P<n>a", `\p{Han}+`, `(?s).*`, "a{1001}", "^$", strings.Repeat("(", 1000), `\C`, "(?i)ſ", `\x{10ffff}`,
	} {
		for _, r := range []retrieval.Request{
			{}, {Match: retrieval.MatchAny}, {Sort: retrieval.SortRecent}, {Regex: true}, {SessionKey: "a"}, {SessionKey: "a", Regex: true}, {SessionKey: "a", Match: retrieval.MatchAny},
		} {
			r.Tenant, r.Query, r.Limit = "t", q, 5
			_, err := b.Search(t.Context(), r)
			if _, invalid := errors.AsType[*contextengine.InvalidError](err); err != nil && !invalid {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
	b.want(retrieval.Request{Query: "' & '"}, "a/5")
	b.want(retrieval.Request{Query: "abc x"}, "a/3")
	b.want(retrieval.Request{Query: `<-> :`}, "a/5")
}

// What comes between two pages shows up in neither, what is erased is gone.
func TestPagesWhileTheLogGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 6 {
		b.say(fmt.Sprintf("s%d", i), "common one", "common two two", "common three three three")
	}
	for _, r := range []retrieval.Request{
		{Query: "common"}, {Query: "common", Sort: retrieval.SortRecent}, {Query: "common", Match: retrieval.MatchAny}, {Query: "comm.n", Regex: true},
	} {
		r.Limit = 4
		key := fmt.Sprintf("gone-%s-%s-%v", r.Sort, r.Match, r.Regex)
		b.say(key, "common secret")
		seen := map[string]bool{}
		for page := 0; ; page++ {
			a := b.find(r)
			for _, h := range places(a) {
				if seen[h] {
					t.Errorf("%+v: %s is on two pages", r, h)
				}
				seen[h] = true
				if page > 0 && strings.HasPrefix(h, "gone-") || strings.HasPrefix(h, "late") {
					t.Errorf("%+v: %s was erased or came later", r, h)
				}
			}
			if page == 0 {
				b.say("late"+key, "common late")
				if _, err := b.store.Erase(t.Context(), "t", key); err != nil {
					t.Fatal(err)
				}
			}
			if r.After = a.Next; r.After == "" {
				break
			}
		}
		for i := range 6 {
			for seq := 1; seq <= 3; seq++ {
				if h := fmt.Sprintf("s%d/%d", i, seq); !seen[h] {
					t.Errorf("%+v: %s is on no page", r, h)
				}
			}
		}
		if _, err := b.store.Erase(t.Context(), "t", "late"+key); err != nil {
			t.Fatal(err)
		}
	}
}

// Searches that hang hold no more connections than they may: appends go on,
// those beyond are refused, and who gives up leaves nothing running in Postgres.
func TestManySearchesLeaveAppendsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "needle")
	b.want(retrieval.Request{Query: "needle"}, "a/1")
	db, watch := connect(t, b), connect(t, b)
	lock, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE search_parts IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	searches := retrieval.NewSearcher(b.store, nil).AtOnce(3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const callers = 50
	ended := make(chan error, callers)
	for range callers {
		go func() {
			_, err := searches.Search(ctx, retrieval.Request{Tenant: "t", Query: "needle"})
			ended <- err
		}()
	}
	// Three run, twelve wait; the others are told at once, the twelve in a moment.
	for range callers - 3 {
		if err := <-ended; !errors.Is(err, retrieval.ErrBusy) {
			t.Errorf("a search beyond what may wait: %v", err)
		}
	}
	b.say("a", "turns go on")
	if running, waiting, refused := searches.Load(); running != 3 || waiting != 0 || refused != callers-3 {
		t.Errorf("%d run, %d wait, %d refused", running, waiting, refused)
	}
	cancel()
	for range 3 {
		if err := <-ended; err == nil {
			t.Error("a search ended well under the lock")
		}
	}
	for {
		var left int
		// Not in the lock's transaction: there the view stays as it was first seen.
		err := watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'").Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break // else the request to stop is on its way
		}
		runtime.Gosched()
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := searches.Search(t.Context(), retrieval.Request{Tenant: "t", Query: "needle"}); err != nil || len(a.Hits) != 1 {
		t.Errorf("after it: %d hits, %v", len(a.Hits), err)
	}
}

func connect(t *testing.T, b *bundle) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.store.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// The lag counts what is not indexed, and is over when it is.
func TestTheLagIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.say("a", "one", "two")
	events, oldest, err := b.store.SearchLag(t.Context())
	if err != nil || events < 2 || oldest < 0 || oldest > time.Hour {
		t.Errorf("%d events, %s, %v", events, oldest, err)
	}
	b.find(retrieval.Request{Query: "one"})
	if events, oldest, err = b.store.SearchLag(t.Context()); err != nil || events != 0 || oldest != 0 {
		t.Errorf("indexed: %d events, %s, %v", events, oldest, err)
	}
}
