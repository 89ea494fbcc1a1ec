package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// heir opens a fork of a session at its head.
func heir(t testing.TB, s *store.Store, parent, key string) store.Appended {
	t.Helper()
	v, err := s.Session(t.Context(), tenant, parent)
	if err != nil {
		t.Fatal(err)
	}
	start := events.FirstState()
	start.Line = start.Line.Extend(events.SID(v.SID), parent, v.Head, v.LeafOffset)
	body, err := json.Marshal(events.ForkedBody{ParentSID: events.SID(v.SID), ParentSessionKey: parent, AtSeq: v.Head, Inherited: v.Head})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.OpenChild(t.Context(), &store.NewChild{
		Tenant: tenant, Key: key, Parent: v.SID, ParentKey: parent, ParentSeq: v.Head, Kind: store.KindFork,
		Events: []store.NewEvent{{Type: events.Forked, Body: body}},
		Start:  &store.ChildStart{State: start, LeafOffset: v.LeafOffset},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// forgot checks that a fork took one epoch step and shows nothing of its parent.
func forgot(t testing.TB, s *store.Store, key string, writes int64) {
	t.Helper()
	v, err := s.View(t.Context(), tenant, key, [16]byte{}, 0, 0)
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return
	}
	if v.Epoch != 2 || v.Head != 2+writes || v.State.Epoch != 2 || v.State.Cause != events.CauseAncestor {
		t.Errorf("%s: head %d, epoch %d, state %+v", key, v.Head, v.Epoch, v.State)
	}
	if as := v.State.Line.Ancestors(); len(as) > 0 || v.LiveTokens() != writes {
		t.Errorf("%s still inherits of %v, %d tokens", key, as, v.LiveTokens())
	}
	evs := log(t, s, key)
	steps := 0
	for i, e := range evs {
		if e.Seq != int64(i+1) {
			t.Errorf("%s: seq %d at %d", key, e.Seq, i)
		}
		if e.Type == events.AncestorErased {
			steps++
		}
	}
	if steps != 1 || int64(len(evs)) != v.Head {
		t.Errorf("%s: %d steps in %d events", key, steps, len(evs))
	}
	d, ok, err := s.DescentOf(t.Context(), tenant, v.SID, key)
	if err != nil || !ok || d.ParentKey == "parent" {
		t.Errorf("%s: %+v %v %v", key, d, ok, err)
	}
}

// hold takes a session's lock as a writer does that never comes to an end.
func hold(t testing.TB, url, key string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(session_lock_id($1, $2))`, tenant, key); err != nil {
		t.Fatal(err)
	}
	released := false
	release = func() {
		if !released {
			released = true
			_ = conn.Close(context.WithoutCancel(t.Context()))
		}
	}
	t.Cleanup(release)
	return release
}

// However many inherited, each transaction of the erasure is about few of them.
func TestErasureOfManyHeirsGoesInBatches(t *testing.T) {
	t.Parallel()
	const heirs, most = 600, 64
	url := testdb.New(t)
	s := openURL(t, url)
	a := mustAppend(t, s, item("parent", msg("secret", 100)))
	for i := range heirs {
		heir(t, s, "parent", fmt.Sprint("h", i))
	}
	mustAppend(t, s, item("h7", msg("own", 1)))
	e, err := s.Erase(t.Context(), tenant, "parent")
	if err != nil || !e.Complete || e.SID != a.SID {
		t.Fatalf("%+v %v", e, err)
	}
	if e.Counts["events"] != 1 || e.Counts["sessions"] != 1 || e.Counts["forgetting"] != 0 {
		t.Errorf("receipt: %v", e.Counts)
	}
	var transactions, inOne int
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), `SELECT count(*), max(n) FROM (SELECT count(*) AS n FROM events WHERE type = $1 GROUP BY xid) x`, events.AncestorErased).
		Scan(&transactions, &inOne)
	if err != nil || inOne > most || transactions > heirs/most+2 {
		t.Errorf("%d transactions, the largest of %d forks, %v", transactions, inOne, err)
	}
	var left int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM forgetting`).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d forks are still to forget, %v", left, err)
	}
	for i := range heirs {
		writes := int64(0)
		if i == 7 {
			writes = 1
		}
		forgot(t, s, fmt.Sprint("h", i), writes)
	}
}

// A fork that somebody holds keeps neither the others from forgetting nor from
// being written to; and where the erasure breaks off, whoever reads one that has
// not forgotten yet has it forget first. A sweep does the rest.
func TestBrokenOffErasureStallsNoHeir(t *testing.T) {
	t.Parallel()
	const heirs = 150
	url := testdb.New(t)
	s := openURL(t, url)
	mustAppend(t, s, item("parent", msg("secret", 100)))
	for i := range heirs {
		heir(t, s, "parent", fmt.Sprint("h", i))
	}
	release := hold(t, url, "h3") // sids ascend: it is in the first batch
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan store.Erasure, 1)
	go func() {
		e, err := s.Erase(ctx, tenant, "parent")
		if err != nil {
			t.Error(err)
		}
		done <- e
	}()
	waitForLock(t, url)
	writes := map[string]int64{}
	for _, key := range []string{"h0", "h4", "h149"} {
		mustAppend(t, s, item(key, msg("meanwhile", 1)))
		writes[key] = 1
	}
	cancel()
	if e := <-done; e.Complete {
		t.Error("complete, without h3")
	}
	var left int
	if err := queryRow(t, url, `SELECT count(*) FROM forgetting`, &left); err != nil || left < heirs/2 {
		t.Fatalf("%d forks are still to forget, %v: the test proves nothing", left, err)
	}
	forgot(t, s, "h149", 1)
	forgot(t, s, "h148", 0)
	if _, err := s.OpenChild(t.Context(), &store.NewChild{Tenant: tenant, Key: "late", ParentKey: "parent", Kind: store.KindFork}); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("a fork of what is erased: %v", err)
	}
	heir(t, s, "h147", "of an heir")
	release()
	exec(t, url, `UPDATE tombstones SET sweep_at = now()`)
	if n, err := s.SweepErased(t.Context(), 10); err != nil || n != 1 {
		t.Fatalf("sweep: %d, %v", n, err)
	}
	for i := range heirs {
		key := fmt.Sprint("h", i)
		forgot(t, s, key, writes[key])
	}
	var unfinished int
	if err := queryRow(t, url, `SELECT count(*) FROM tombstones WHERE emptied_at IS NULL`, &unfinished); err != nil || unfinished > 0 {
		t.Errorf("%d unfinished, %v", unfinished, err)
	}
	if v, err := s.View(t.Context(), tenant, "of an heir", [16]byte{}, 0, 0); err != nil || v.Epoch != 1 || len(v.State.Line.Ancestors()) != 1 {
		t.Errorf("a fork of a fork that had forgotten: %+v %v", v, err)
	}
}

// What an erased ancestor told a fork's summaries is in none of the fork's events,
// wherever they are read, before it has come to forget it.
func TestSummariesOfWhatIsErasedAreNotRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*store.Store, store.Appended) ([]events.Event, error){
		"log": func(s *store.Store, a store.Appended) ([]events.Event, error) {
			return s.Events(t.Context(), tenant, a.SID, 0, 100)
		},
		"feed": func(s *store.Store, _ store.Appended) ([]events.Event, error) {
			for {
				page, err := s.FeedWithin(t.Context(), tenant, store.Cursor{}, 100, 1<<20)
				if err != nil || len(page) >= 3 {
					out := make([]events.Event, len(page))
					for i := range page {
						out[i] = page[i].Event
					}
					return out, err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			s := openURL(t, url)
			mustAppend(t, s, item("parent", msg("secret", 100)))
			h := heir(t, s, "parent", "h")
			body, err := json.Marshal(events.SummaryBody{Text: "of a secret", Covers: []events.Range{{From: 1, To: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			it := item("h", store.NewEvent{Type: events.SummaryCreated, Body: body})
			it.Host = false
			mustAppend(t, s, it)
			breakOff(t, s, url, "parent")
			evs, err := read(s, h)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, e := range evs {
				if e.Type != events.SummaryCreated {
					continue
				}
				found = true
				var b events.SummaryBody
				if err := json.Unmarshal(e.Body, &b); err != nil || b.Text != "" {
					t.Errorf("%+v, %v", b, err)
				}
			}
			if !found {
				t.Error("the summary's event has gone")
			}
		})
	}
}

// breakOff erases a session and breaks off behind the tombstone.
func breakOff(t testing.TB, s *store.Store, url, key string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE bodies IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Erase(ctx, tenant, key)
		done <- err
	}()
	waitForLock(t, url)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A grave that cannot be emptied keeps no other from it; its own rows go all the same.
func TestSweepPassesOverWhatItCannotFinish(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	a := mustAppend(t, s, item("parent", msg("secret", 100)))
	broken := heir(t, s, "parent", "broken")
	heir(t, s, "parent", "sound")
	b := mustAppend(t, s, item("other", msg("secret", 100)))
	breakOff(t, s, url, "parent")
	breakOff(t, s, url, "other")
	exec(t, url, `UPDATE session_states SET state = 'no state' WHERE sid = $1`, broken.SID)
	exec(t, url, `UPDATE tombstones SET sweep_at = now() - CASE WHEN sid = $1 THEN interval '1 hour' ELSE interval '0' END`, a.SID)
	if n, err := s.SweepErased(t.Context(), 10); err != nil || n != 2 {
		t.Fatalf("sweep: %d, %v", n, err)
	}
	for _, sid := range []fmt.Stringer{a.SID, b.SID} {
		if left := rowsOf(t, url, sid); len(left) > 0 {
			t.Errorf("%s left: %v", sid, left)
		}
	}
	forgot(t, s, "sound", 0)
	var unfinished string
	var due time.Time
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), `SELECT sid::text, sweep_at FROM tombstones WHERE emptied_at IS NULL`).Scan(&unfinished, &due)
	if err != nil || unfinished != a.SID.String() || due.IsZero() {
		t.Errorf("unfinished: %s, looked at again %v, %v", unfinished, due, err)
	}
}

func TestEraseManyPassesOverWhatItCannotErase(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	for _, key := range []string{"u:1", "u:2", "u:3"} {
		mustAppend(t, s, item(key, msg("m", 1)))
	}
	keepRow(t, url, "u:2")
	es, err := s.EraseMany(t.Context(), tenant, "u:")
	if err == nil || len(es) != 2 || !es[0].Complete || !es[1].Complete {
		t.Errorf("%+v, %v", es, err)
	}
}

// keepRow lets nobody delete a session.
func keepRow(t testing.TB, url, key string) {
	t.Helper()
	exec(t, url, `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'kept'; END $$`)
	exec(t, url, `CREATE TRIGGER keep BEFORE DELETE ON sessions FOR EACH ROW WHEN (OLD.session_key = '`+key+`') EXECUTE FUNCTION keep()`)
}

// To forget is no use of a fork: else an idle tree of forks would outlive what is
// kept of it by that time again for each of its generations.
func TestForgettingIsNoUseOfAFork(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	mustAppend(t, s, item("parent", msg("secret", 100)))
	heir(t, s, "parent", "in a batch")
	heir(t, s, "parent", "alone")
	exec(t, url, `UPDATE sessions SET updated_at = now() - interval '100 days'`)
	release := hold(t, url, "alone")
	done := make(chan error, 1)
	go func() {
		_, err := s.Erase(t.Context(), tenant, "parent")
		done <- err
	}()
	waitForLock(t, url)
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	idle := store.Retention{Idle: 90 * 24 * time.Hour}
	for _, key := range []string{"in a batch", "alone"} {
		forgot(t, s, key, 0)
		v, err := s.Session(t.Context(), tenant, key)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := s.EraseExpired(t.Context(), idle, store.Expired{Tenant: tenant, Key: key, SID: v.SID})
		if err != nil || !ok {
			t.Errorf("%s, written to at %s, has not expired: %v", key, v.UpdatedAt, err)
		}
	}
}
