package retrieval_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

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
	}{"": {1, true}, "plain": {1, false}, "sealed": {0, true}} {
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
