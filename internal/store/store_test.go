package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "t1"

func open(t testing.TB) *store.Store {
	t.Helper()
	return openURL(t, testdb.New(t))
}

// openURL opens a store on a database; with ENGINED_TEST_PGBOUNCER set through a
// pooler in transaction mode, so that the whole suite tells what that breaks.
func openURL(t testing.TB, url string) *store.Store {
	t.Helper()
	cfg := store.Config{URL: url, RowSecurity: true}
	if os.Getenv("ENGINED_TEST_PGBOUNCER") != "" {
		cfg.URL, cfg.PgBouncer = testdb.Bounce(t, url), true
	}
	return openConfig(t, cfg)
}

func openConfig(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := storetest.Open(t, t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// msg is a message event of a given size in tokens.
func msg(body string, tokens int, keys ...string) store.NewEvent {
	e := store.NewEvent{
		Type: events.MessageAppended, Body: []byte(body), Hash: sha256.Sum256([]byte(body)),
		Facts: message.Facts{Role: message.User, Tokens: tokens},
	}
	for _, k := range keys {
		e.Keys = append(e.Keys, store.Key{Kind: store.ClientKey, Value: []byte(k)})
	}
	return e
}

func item(session string, evs ...store.NewEvent) *store.Item {
	return &store.Item{Tenant: tenant, SessionKey: session, Create: true, Host: true, Events: evs}
}

func mustAppend(t testing.TB, s *store.Store, it *store.Item) store.Appended {
	t.Helper()
	a, err := s.Append(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func log(t testing.TB, s *store.Store, session string) []events.Event {
	t.Helper()
	row, err := s.Session(t.Context(), tenant, session)
	if err != nil {
		t.Fatal(err)
	}
	evs, err := s.Events(t.Context(), tenant, row.SID, 0, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return evs
}

func TestAppendNumbersEventsAndKeepsBytes(t *testing.T) {
	t.Parallel()
	s := open(t)
	bodies := []string{`{"b":1.00,"a":"\u0000\ud800<&>"}`, `{ "role" : "user" }`, `{}`}
	a := mustAppend(t, s, item("k", msg(bodies[0], 10), msg(bodies[1], 20)))
	if diff := cmp.Diff([]int64{1, 2}, a.Seqs); diff != "" {
		t.Error(diff)
	}
	b := mustAppend(t, s, item("k", msg(bodies[2], 5)))
	if b.Head != 3 || b.Epoch != 1 || b.SID != a.SID {
		t.Errorf("second append: %+v", b)
	}
	for i, e := range log(t, s, "k") {
		if string(e.Body) != bodies[i] {
			t.Errorf("event %d: body %q, want %q", e.Seq, e.Body, bodies[i])
		}
		if e.Seq != int64(i+1) || e.ParentSeq != int64(i) {
			t.Errorf("event %d: seq %d parent %d", i, e.Seq, e.ParentSeq)
		}
	}
	if got := log(t, s, "k")[2].Offset; got != 35 {
		t.Errorf("running total %d, want 35", got)
	}
}

func TestLargeBodiesAreKeptWholeAndOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	big := make([]byte, 300<<10)
	for i := range big {
		big[i] = byte(i)
	}
	e := msg(string(big), 1)
	mustAppend(t, s, item("k", e, e, msg("small", 1)))
	for _, ev := range log(t, s, "k")[:2] {
		if !cmp.Equal(ev.Body, big) {
			t.Errorf("event %d: %d bytes came back of %d", ev.Seq, len(ev.Body), len(big))
		}
	}
}

func TestReadsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := open(t)
	large := strings.Repeat("x", 100_000)
	for i := range 9 {
		body := fmt.Sprintf(`{"n":%d}`, i)
		if i%2 == 1 {
			body = fmt.Sprintf(`{"n":%d,"x":%q}`, i, large)
		}
		mustAppend(t, s, item("s", msg(body, 1)))
	}
	row, err := s.Session(t.Context(), tenant, "s")
	if err != nil {
		t.Fatal(err)
	}
	// Other tests' transactions hold the feed's horizon back for a moment.
	for n := 0; n < 9; {
		page, err := s.FeedWithin(t.Context(), tenant, store.Cursor{}, 100, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		n = len(page)
	}
	for _, tt := range []struct {
		limit int
		bytes int64
		want  int
	}{{100, 1, 1}, {100, 9 + storetest.Overhead(), 2}, {100, 50_000, 2}, {100, 150_000, 4}, {100, 1 << 30, 9}, {3, 1 << 30, 3}, {100, 0, 1}} {
		found, err := s.EventsWithin(t.Context(), tenant, row.SID, 0, tt.limit, tt.bytes)
		if err != nil || len(found) != tt.want {
			t.Errorf("%d rows, %d bytes: %d events, want %d (%v)", tt.limit, tt.bytes, len(found), tt.want, err)
		}
		for i, e := range found {
			if e.Seq != int64(i+1) {
				t.Errorf("event %d has seq %d", i, e.Seq)
			}
		}
		feed, err := s.FeedWithin(t.Context(), tenant, store.Cursor{}, tt.limit, tt.bytes)
		if err != nil || len(feed) != tt.want {
			t.Errorf("%d rows, %d bytes: %d of the feed, want %d (%v)", tt.limit, tt.bytes, len(feed), tt.want, err)
		}
	}
}

// TestThePlaceBeforeTheNewest: pages from there are the end of the feed, and
// erased sessions have no part in it.
func TestThePlaceBeforeTheNewest(t *testing.T) {
	t.Parallel()
	s := open(t)
	if c, err := s.FeedBack(t.Context(), tenant, 5); err != nil || c != (store.Cursor{}) {
		t.Errorf("of nothing: %+v, %v", c, err)
	}
	for i := range 12 {
		mustAppend(t, s, item(fmt.Sprintf("s%d", i%3), msg(fmt.Sprintf(`{"n":%d}`, i), 1)))
	}
	if _, err := s.Erase(t.Context(), tenant, "s2"); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 8; { // until the horizon is behind them
		all, err := s.FeedWithin(t.Context(), tenant, store.Cursor{}, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		n = len(all)
	}
	for want := range 8 {
		from, err := s.FeedBack(t.Context(), tenant, want+1)
		if err != nil {
			t.Fatal(err)
		}
		page, err := s.FeedWithin(t.Context(), tenant, from, 100, 1<<20)
		if err != nil || len(page) != want+1 || string(page[want].Body) != `{"n":10}` {
			t.Errorf("the newest %d: %d, %v", want+1, len(page), err)
		}
	}
	if page, err := s.Sessions(t.Context(), tenant, "s0", "S", 9); err != nil || len(page) != 1 || page[0].Key != "s1" {
		t.Errorf("sessions behind s0 that hold S: %+v, %v", page, err)
	}
	for _, none := range []string{"%", "_", "s2"} {
		if page, err := s.Sessions(t.Context(), tenant, "", none, 9); err != nil || len(page) != 0 {
			t.Errorf("sessions that hold %s: %+v, %v", none, page, err)
		}
	}
}

func TestSameKeySamePayloadAnswersTheFirstSeq(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, item("k", msg("a", 1, "one")))
	mustAppend(t, s, item("k", msg("b", 1)))
	again := mustAppend(t, s, item("k", msg("a", 1, "one")))
	if !again.Duplicate || again.Seqs[0] != 1 || again.Head != 2 {
		t.Errorf("retry: %+v", again)
	}
	_, err := s.Append(t.Context(), item("k", msg("other", 1, "one")))
	var conflict *contextengine.IdempotencyConflictError
	if !errors.As(err, &conflict) || conflict.Key != "one" || conflict.Seq != 1 {
		t.Errorf("other payload: %v", err)
	}
	if n := len(log(t, s, "k")); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

func TestKnownKeyInsideABatchIsSkipped(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, item("k", msg("a", 1, "one")))
	a := mustAppend(t, s, item("k", msg("x", 1), msg("a", 1, "one"), msg("y", 1)))
	if diff := cmp.Diff([]int64{2, 1, 3}, a.Seqs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bool{false, true, false}, a.Known); diff != "" {
		t.Error(diff)
	}
}

func TestGateMakesTheWholeItemADuplicate(t *testing.T) {
	t.Parallel()
	s := open(t)
	turn := func() *store.Item {
		end := store.NewEvent{Type: events.TurnCommitted, Body: []byte("{}"), Keys: []store.Key{{Kind: store.TurnKey, Value: []byte("turn")}}}
		it := item("k", msg("a", 1), msg("b", 1), end)
		it.Gate = 3
		return it
	}
	mustAppend(t, s, turn())
	again := mustAppend(t, s, turn())
	if !again.Duplicate || again.Head != 3 {
		t.Errorf("retry: %+v", again)
	}
}

func TestExpectationsAreHeldAgainstTheHostsHead(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, item("k", msg("a", 1), msg("b", 1)))
	engine := item("k", store.NewEvent{Type: events.SummaryCreated, Body: []byte("{}")})
	engine.Host = false
	mustAppend(t, s, engine)

	try := func(head, epoch *int64) error {
		it := item("k", msg("c", 1, "key-c"))
		it.ExpectedHead, it.ExpectedEpoch = head, epoch
		_, err := s.Append(t.Context(), it)
		return err
	}
	n := func(v int64) *int64 { return &v }
	var stale *contextengine.StaleHeadError
	for _, head := range []int64{0, 1, 4} {
		if err := try(n(head), nil); !errors.As(err, &stale) || stale.Head != 3 {
			t.Errorf("expected head %d: %v", head, err)
		}
	}
	var epoch *contextengine.EpochConflictError
	if err := try(n(2), n(2)); !errors.As(err, &epoch) || epoch.Epoch != 1 {
		t.Errorf("expected epoch 2: %v", err)
	}
	// What the engine wrote after the host's head makes nobody stale.
	if err := try(n(2), n(1)); err != nil {
		t.Errorf("expected head 2: %v", err)
	}
	// A retry is recognised before its expectation is checked.
	if err := try(n(2), nil); err != nil {
		t.Errorf("retry: %v", err)
	}
}

func TestStaleWriteToAnUnknownSessionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	it := item("k", msg("a", 1))
	five := int64(5)
	it.ExpectedHead = &five
	var stale *contextengine.StaleHeadError
	if _, err := s.Append(t.Context(), it); !errors.As(err, &stale) || stale.Head != 0 {
		t.Errorf("got %v", err)
	}
	if _, err := s.Session(t.Context(), tenant, "k"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("session: %v", err)
	}
}

func TestTenantsShareNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	a := mustAppend(t, s, item("k", msg("a", 1, "one")))
	other := item("k", msg("b", 1, "one"))
	other.Tenant = "t2"
	b := mustAppend(t, s, other)
	if a.SID == b.SID || b.Seqs[0] != 1 || b.Duplicate {
		t.Errorf("two tenants: %+v and %+v", a, b)
	}
	if _, err := s.SessionBySID(t.Context(), "t2", a.SID); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("another tenant's sid: %v", err)
	}
}

func TestDebtIsWrittenWithTheAppendThatCrossedTheThreshold(t *testing.T) {
	t.Parallel()
	s := open(t)
	add := func(tokens int, owes bool) store.Appended {
		it := item("k", msg("a", tokens))
		it.Budget, it.Owes = 1000, owes
		return mustAppend(t, s, it)
	}
	if a := add(840, true); a.Debt {
		t.Error("debt under the threshold")
	}
	if a := add(20, false); a.Debt {
		t.Error("debt of an append that owes none")
	}
	a := add(0, true)
	if !a.Debt {
		t.Fatal("no debt over the threshold")
	}
	d, ok, err := s.DebtOf(t.Context(), tenant, a.SID)
	if err != nil || !ok || d.Tokens != 860 || d.Budget != 1000 || d.Epoch != 1 {
		t.Errorf("debt %+v %v %v", d, ok, err)
	}
}

func TestCancelledCallerWritesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, item("k", msg("a", 1))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Session(t.Context(), tenant, "k"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("session: %v", err)
	}
}

func TestOneBadItemHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := open(t)
	// Go accepts NUL in a string, Postgres does not: such an item fails alone,
	// whatever batch it was in.
	errs := make(chan error)
	for i := range 40 {
		go func() {
			it := item(fmt.Sprintf("k%d", i), msg("a", 1))
			if i%10 == 3 {
				it.HostSession = "nul\x00"
			}
			_, err := s.Append(t.Context(), it)
			if (err != nil) != (i%10 == 3) {
				errs <- fmt.Errorf("item %d: %w", i, err)
				return
			}
			errs <- nil
		}()
	}
	for range 40 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
