package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// resetStep is an epoch step that needs nothing of the session.
func resetStep(token string) func(store.Session, events.State, int64) (store.EpochStep, error) {
	return func(_ store.Session, state events.State, seq int64) (store.EpochStep, error) {
		state.Path = []events.Range{{From: seq + 1, To: events.Open}}
		return store.EpochStep{
			Events: []store.NewEvent{{Type: events.SessionReset, Body: []byte(`{"hostSessionId":"named by a reset"}`)}},
			State:  state, Host: true, PaysDebt: true, LeaseToken: token,
		}, nil
	}
}

// fill writes to every table that this package fills.
func fill(t testing.TB, s *store.Store, key string) store.Appended {
	t.Helper()
	it := item(key, msg("small", 200_000, "key"), msg(strings.Repeat("large ", 60_000), 1))
	it.HostSession, it.Gateway, it.Owes = "life", "gw", true
	a := mustAppend(t, s, it)
	if !a.Debt {
		t.Fatal("no debt")
	}
	mustTake(t, s, lease(key, "owner"))
	if _, err := s.StepEpoch(t.Context(), tenant, key, 0, func(c store.Session, st events.State, n int64) (store.EpochStep, error) {
		step, err := resetStep("")(c, st, n)
		step.PaysDebt = false
		return step, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutDraft(t.Context(), tenant, a.SID, []byte("key"), []byte("draft")); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordAttempt(t.Context(), store.Attempt{Tenant: tenant, SID: a.SID, Outcome: "failed", Err: "text", StartedAt: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordAnswers(t.Context(), []store.Answer{{Tenant: tenant, SID: a.SID, Params: []byte("{}"), At: time.Unix(0, 0)}}); err != nil {
		t.Fatal(err)
	}
	return a
}

func queryRow(t testing.TB, url, sql string, to any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	return conn.QueryRow(t.Context(), sql).Scan(to)
}

// rowsOf counts what tables hold of a session, by its id.
func rowsOf(t testing.TB, url string, sid fmt.Stringer) map[string]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT 'sessions' UNION ALL SELECT session_tables()`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int64)
	for _, table := range tables {
		var n int64
		q := `SELECT count(*) FROM ` + pgx.Identifier{table}.Sanitize() + ` WHERE tenant_id = $1 AND sid::text = $2`
		if err := conn.QueryRow(t.Context(), q, tenant, sid.String()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		// Keys are destroyed before anything is counted.
		if n > 0 && table != "session_keys" {
			out[table] = n
		}
	}
	return out
}

func TestEraseLeavesNoRowAndCountsThem(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	a, other := fill(t, s, "k"), fill(t, s, "other")
	exec(t, url, `INSERT INTO audit (tenant_id, at, key_id, request_id, method, route, session_key, status)
		SELECT $1, now(), 'id', 'r', 'GET', '/', k, 200 FROM unnest('{k,other}'::text[]) AS k`, tenant)
	before, others := rowsOf(t, url, a.SID), rowsOf(t, url, other.SID)
	for _, table := range []string{"sessions", "events", "bodies", "event_keys", "session_states", "leases", "compaction_debt", "compaction_attempts", "drafts", "window_answers"} {
		if before[table] == 0 {
			t.Errorf("the test puts nothing into %s", table)
		}
	}
	e, err := s.Erase(t.Context(), tenant, "k")
	if err != nil || !e.Complete || e.SID != a.SID {
		t.Fatalf("%+v, %v", e, err)
	}
	if diff := cmp.Diff(before, e.Counts); diff != "" {
		t.Errorf("receipt (-rows +counts):\n%s", diff)
	}
	if left := rowsOf(t, url, a.SID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	var named []string
	if err := queryRow(t, url, `SELECT array_agg(session_key ORDER BY id) FROM audit`, &named); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(named[0], "erased:") || named[1] != "other" {
		t.Errorf("the audit names %q", named)
	}
	if diff := cmp.Diff(others, rowsOf(t, url, other.SID)); diff != "" {
		t.Errorf("the other session:\n%s", diff)
	}
	if _, err := s.Erase(t.Context(), tenant, "k"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("erased twice: %v", err)
	}
	if _, err := s.Erase(t.Context(), "another tenant", "other"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("another tenant's: %v", err)
	}
}

func TestErasedLifeIsKnownByEveryHostSessionItKnew(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "k")
	second := item("k", msg("b", 1))
	second.HostSession = "life 2"
	mustAppend(t, s, second)
	if _, err := s.Erase(t.Context(), tenant, "k"); err != nil {
		t.Fatal(err)
	}
	write := func(hostSession string) error {
		it := item("k", msg("c", 1))
		it.HostSession = hostSession
		_, err := s.Append(t.Context(), it)
		return err
	}
	late := []string{"", "life", "life 2", "named by a reset"}
	for _, name := range late {
		if err := write(name); !errors.Is(err, contextengine.ErrSessionErased) {
			t.Errorf("append naming %q: %v", name, err)
		}
		r := lease("k", "o")
		r.HostSession = name
		if _, err := s.TakeLease(t.Context(), r); !errors.Is(err, contextengine.ErrSessionErased) {
			t.Errorf("lease naming %q: %v", name, err)
		}
		if erased, err := s.Erased(t.Context(), tenant, "k", name); err != nil || !erased {
			t.Errorf("%q is erased: %v, %v", name, erased, err)
		}
	}
	if err := write("never seen"); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Session(t.Context(), tenant, "k"); err != nil || row.Head != 1 {
		t.Errorf("the new life: %+v, %v", row, err)
	}
	if err := write(""); err != nil {
		t.Errorf("a write that names no host session, beside the new life: %v", err)
	}
	for _, name := range late[1:] {
		if err := write(name); !errors.Is(err, contextengine.ErrSessionErased) {
			t.Errorf("late write naming %q beside the new life: %v", name, err)
		}
	}
	// The second life ends as the first did, and both are remembered.
	if _, err := s.Erase(t.Context(), tenant, "k"); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(late, "never seen") {
		if err := write(name); !errors.Is(err, contextengine.ErrSessionErased) {
			t.Errorf("after both lives, naming %q: %v", name, err)
		}
	}
}

// Whoever writes by the session's id while it is erased either comes first,
// and goes with it, or finds it gone.
func TestOverlappingWritesDoNotSurviveTheErasure(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	for _, c := range []struct{ name, sql string }{
		{"draft", `INSERT INTO drafts (tenant_id, sid, key, draft)
			SELECT s.tenant_id, s.sid, 'k', 'd' FROM sessions s WHERE s.tenant_id = $1 AND s.sid = $2 FOR KEY SHARE`},
		{"append", `SELECT append_events($1, false, 1, 1, ARRAY['append'], ARRAY[$2::uuid], ARRAY[true], ARRAY[true], ARRAY[''], ARRAY[''],
			ARRAY[-1], ARRAY[-1], ARRAY[''], ARRAY[0], ARRAY[0], ARRAY[false], ARRAY[1], ARRAY[false], ARRAY[false], ARRAY[1], ARRAY[1::smallint],
			ARRAY[''::bytea], ARRAY['late'::bytea], ARRAY[0::smallint], ARRAY[0::smallint], ARRAY[1], ARRAY[0], ARRAY[''::bytea],
			ARRAY[0::smallint], ARRAY[null::bytea], ARRAY[0::smallint], ARRAY[null::bytea])`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := fill(t, s, c.name)
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The writer is paused between its write and its commit …
			if _, err := tx.Exec(t.Context(), c.sql, tenant, a.SID); err != nil {
				t.Fatal(err)
			}
			erased := make(chan error, 1)
			go func() {
				_, err := s.Erase(t.Context(), tenant, c.name)
				erased <- err
			}()
			waitForLock(t, url)
			// … and goes on when the erasure waits for it.
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-erased; err != nil {
				t.Fatal(err)
			}
			if left := rowsOf(t, url, a.SID); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			// The same, later.
			if err := s.PutDraft(t.Context(), tenant, a.SID, []byte("late"), []byte("d")); err != nil {
				t.Fatal(err)
			}
			if err := s.RecordAttempt(t.Context(), store.Attempt{Tenant: tenant, SID: a.SID, StartedAt: time.Unix(0, 0)}); err != nil {
				t.Fatal(err)
			}
			if err := s.RecordAnswers(t.Context(), []store.Answer{{Tenant: tenant, SID: a.SID, At: time.Unix(0, 0)}}); err != nil {
				t.Fatal(err)
			}
			if left := rowsOf(t, url, a.SID); len(left) > 0 {
				t.Errorf("left by late writers: %v", left)
			}
		})
	}
}

// waitForLock returns once a statement of this database waits for another.
func waitForLock(t testing.TB, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for n := 0; n == 0; {
		const q = `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`
		if err := conn.QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// An erasure that ends right after the tombstone hides everything already, and
// a sweep finishes it.
func TestBrokenOffErasureIsHiddenAndFinished(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	a := fill(t, s, "k")
	want := rowsOf(t, url, a.SID)
	// Nobody can delete from drafts: the erasure hides the session and stops there.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE drafts IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan store.Erasure, 1)
	go func() {
		e, err := s.Erase(ctx, tenant, "k")
		if err != nil {
			t.Error(err)
		}
		done <- e
	}()
	waitForLock(t, url)
	cancel()
	if e := <-done; e.Complete || e.Counts["sessions"] != 1 {
		t.Errorf("receipt of a broken-off erasure: %+v", e)
	}
	if _, err := s.Session(t.Context(), tenant, "k"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("the session: %v", err)
	}
	if evs, err := s.Events(t.Context(), tenant, a.SID, 0, 100); err != nil || len(evs) > 0 {
		t.Errorf("%d events to see, %v", len(evs), err)
	}
	if page, err := s.FeedWithin(t.Context(), tenant, store.Cursor{}, 100, 1<<20); err != nil || len(page) > 0 {
		t.Errorf("%d events in the feed, %v", len(page), err)
	}
	if _, err := s.Append(t.Context(), item("k", msg("late", 1))); !errors.Is(err, contextengine.ErrSessionErased) {
		t.Errorf("late write: %v", err)
	}
	if left := rowsOf(t, url, a.SID); left["events"] == 0 {
		t.Fatal("the test broke nothing off")
	}
	if n, err := s.SweepErased(t.Context(), 10); err != nil || n != 0 {
		t.Errorf("a sweep took what may be under way: %d, %v", n, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, url, `UPDATE tombstones SET sweep_at = now()`)
	if n, err := s.SweepErased(t.Context(), 10); err != nil || n != 1 {
		t.Fatalf("sweep: %d, %v", n, err)
	}
	if left := rowsOf(t, url, a.SID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	counts := map[string]int64{}
	if err := conn.QueryRow(t.Context(), `SELECT counts FROM tombstones`).Scan(&counts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("the receipt of both parts (-rows +counts):\n%s", diff)
	}
	// Once more, for what a transaction of the past may bring; then never again.
	exec(t, url, `UPDATE tombstones SET sweep_at = now() WHERE sweep_at IS NOT NULL`)
	for _, want := range []int{1, 0} {
		if n, err := s.SweepErased(t.Context(), 10); err != nil || n != want {
			t.Errorf("later sweep: %d, %v, want %d", n, err, want)
		}
		exec(t, url, `UPDATE tombstones SET sweep_at = now() WHERE sweep_at IS NOT NULL`)
	}
}

func TestEraseManyTakesThePrefixAndNothingElse(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, key := range []string{"a", "u:1", "u:1/x", "u:1\U0010ffff", "u:10", "u:2", "U:1", "v"} {
		mustAppend(t, s, item(key, msg("m", 1)))
	}
	es, err := s.EraseMany(t.Context(), tenant, "u:1")
	if err != nil || len(es) != 4 {
		t.Fatalf("%+v, %v", es, err)
	}
	for _, e := range es {
		if !e.Complete || e.Counts["events"] != 1 {
			t.Errorf("%+v", e)
		}
	}
	left, err := s.Sessions(t.Context(), tenant, "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, l := range left {
		keys = append(keys, l.Key)
	}
	if diff := cmp.Diff([]string{"U:1", "a", "u:2", "v"}, keys); diff != "" {
		t.Error(diff)
	}
	if es, err := s.EraseMany(t.Context(), tenant, "u:1"); err != nil || len(es) != 0 {
		t.Errorf("again: %+v, %v", es, err)
	}
}

// Every table is either erased with its session or known to hold nothing of one.
func TestEveryTableIsErasedOrHoldsNothingOfASession(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `
		SELECT c.relname::text FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'm', 'f') AND NOT c.relispartition
		  AND NOT EXISTS (SELECT FROM session_tables() x WHERE x = c.relname) ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	// A table that holds anything of a session has the columns tenant_id and sid,
	// and is erased with it. Only what needs neither belongs here.
	nothing := []string{
		"api_keys",         // who may call
		"audit",            // names a session by its key, which is put in disguise
		"feed_eras",        // which cluster's ids order the feed
		"checkpoints",      // how far readers of the whole log have come
		"goose_db_version", // the schema's
		"search_cursors",   // how far a tenant's feed is indexed
		"sessions",         // goes first, in the transaction that hides the session
		"summarizer_gates", // a tenant's; its errors are statuses, never texts
		"summarizer_spend", // a tenant's
		"tenant_bytes",     // a tenant's
		"tenant_limits",    // a tenant's
		"tenant_usage",     // a tenant's
		"tombstones",       // stays: hashes and counts
	}
	for _, table := range tables {
		if !slices.Contains(nothing, table) {
			t.Errorf("table %s is not erased with a session: give it tenant_id and sid, or say here why it holds nothing of one", table)
		}
	}
}

func TestRetentionErasesWhatExpiredAndNothingInUse(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	for _, key := range []string{"fresh", "old", "idle", "leased", "awake"} {
		mustAppend(t, s, item(key, msg("m", 1)))
	}
	mustTake(t, s, lease("leased", "o"))
	exec(t, url, `UPDATE sessions SET created_at = now() - interval '10 days' WHERE session_key IN ('old', 'leased')`)
	exec(t, url, `UPDATE sessions SET updated_at = now() - interval '3 days' WHERE session_key IN ('idle', 'awake', 'leased')`)
	policy := store.Retention{Age: 7 * 24 * time.Hour, Idle: 48 * time.Hour}
	var found []store.Expired
	for at, more := (store.RetentionCursor{}), true; more; {
		page, next, again, err := s.ExpiredAfter(t.Context(), policy, at, 2)
		if err != nil {
			t.Fatal(err)
		}
		found, at, more = append(found, page...), next, again
	}
	var keys []string
	for _, x := range found {
		keys = append(keys, x.Key)
	}
	slices.Sort(keys)
	if diff := cmp.Diff([]string{"awake", "idle", "old"}, keys); diff != "" {
		t.Fatal(diff)
	}
	mustAppend(t, s, item("awake", msg("m", 1))) // between the look and the erasure
	for _, x := range found {
		_, ok, err := s.EraseExpired(t.Context(), policy, x)
		if err != nil || ok == (x.Key == "awake") {
			t.Errorf("%s: %v, %v", x.Key, ok, err)
		}
		if _, ok, err := s.EraseExpired(t.Context(), policy, x); err != nil || ok {
			t.Errorf("%s again: %v, %v", x.Key, ok, err)
		}
	}
	if found, _, _, err := s.ExpiredAfter(t.Context(), store.Retention{}, store.RetentionCursor{}, 100); err != nil || len(found) > 0 {
		t.Errorf("without a policy: %v, %v", found, err)
	}
}

// A row that somebody changes while it is to go has moved when it is reached: it
// goes all the same, and counts.
func TestWhatChangesWhileItIsErasedGoesToo(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	a := fill(t, s, "k")
	before := rowsOf(t, url, a.SID)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// As an ancestor's erasure does that takes its key out of the first event.
	if _, err := tx.Exec(t.Context(), `UPDATE events SET body = body || '\x20' WHERE tenant_id = $1 AND sid = $2 AND seq = 1`, tenant, a.SID); err != nil {
		t.Fatal(err)
	}
	receipt := make(chan store.Erasure, 1)
	go func() {
		e, err := s.Erase(t.Context(), tenant, "k")
		if err != nil || !e.Complete {
			t.Errorf("%+v, %v", e, err)
		}
		receipt <- e
	}()
	waitForLock(t, url)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := <-receipt
	if left := rowsOf(t, url, a.SID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if diff := cmp.Diff(before, e.Counts); diff != "" {
		t.Errorf("receipt (-rows +counts):\n%s", diff)
	}
}
