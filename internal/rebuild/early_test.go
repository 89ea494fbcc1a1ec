package rebuild_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/rebuild"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
	"github.com/engined/engined/internal/verify/verifytest"
)

// long makes a session of n messages.
func long(t *testing.T, e *engine.Lossless, key string, n int) {
	t.Helper()
	const batch = 5000
	for from := 0; from < n; from += batch {
		p := contextengine.IngestBatchParams{Session: verifytest.On(key)}
		for i := from; i < min(from+batch, n); i++ {
			p.Messages = append(p.Messages, json.RawMessage(fmt.Sprintf(`{"role":"user","content":"message %d"}`, i)))
		}
		if _, err := e.IngestBatch(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// written counts the transactions that events of a session were last written in
// after a place in time, and the most that one wrote.
func written(t *testing.T, conn *pgx.Conn, key, since string) (transactions, most int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `
		SELECT count(*), coalesce(max(n), 0) FROM (
			SELECT count(*) AS n FROM events e JOIN sessions s USING (tenant_id, sid)
			WHERE s.session_key = $1 AND e.xmin::text::bigint > $2::bigint GROUP BY e.xmin) x`, key, since).Scan(&transactions, &most)
	if err != nil {
		t.Fatal(err)
	}
	return transactions, most
}

func newest(t *testing.T, conn *pgx.Conn) (id string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `SELECT pg_current_xact_id()::text`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// failing breaks off the repair of a session at one of its transactions.
type failing struct {
	*store.Store
	key  string
	left int
}

var errBroken = errors.New("broken off")

func (f *failing) InRepair(ctx context.Context, id store.SessionID, fn func(*store.Repair) error) error {
	if id.Key == f.key {
		if f.left--; f.left < 0 {
			return errBroken
		}
	}
	return f.Store.InRepair(ctx, id, fn)
}

func TestLongSessionsAreRewrittenPageByPage(t *testing.T) {
	t.Parallel()
	const events, page = 20_000, 1000
	for name, wrong := range map[string]string{
		"tokens":        `UPDATE events SET tokens = tokens + 3 WHERE type = 1`,
		"an old reader": `UPDATE events SET reader_version = 0 WHERE type = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			s, e := verifytest.Open(t, url)
			long(t, e, "long", events)
			long(t, e, "other", 10)
			conn := connect(t, url)
			if _, err := conn.Exec(t.Context(), wrong); err != nil {
				t.Fatal(err)
			}
			since := newest(t, conn)
			// What is done before it breaks off stays done, and the next session has its turn.
			const before = 5
			var told []rebuild.Change
			p, err := rebuild.Run(t.Context(), &failing{s, "long", before}, rebuild.Options{}, func(c rebuild.Change) error {
				told = append(told, c)
				return nil
			}, func(rebuild.Progress) {})
			if err != nil || p.Failed != 1 || p.Repaired != 1 || p.Sessions != 2 {
				t.Fatalf("%+v, %v", p, err)
			}
			named := false
			for _, c := range told {
				named = named || c.What == rebuild.Failed && c.SessionKey == "long"
			}
			if !named {
				t.Errorf("nobody is told what failed: %+v", told)
			}
			if n, most := written(t, conn, "long", since); n != before || most != page {
				t.Errorf("%d transactions of up to %d events before it broke off", n, most)
			}
			if _, p := run(t, s, rebuild.Options{}); p.Failed > 0 || p.Repaired != 1 {
				t.Errorf("the rest: %+v", p)
			}
			if n, most := written(t, conn, "long", since); n < events/page || most > page {
				t.Errorf("%d transactions of up to %d events", n, most)
			}
			if found := differences(t, s); len(found) > 0 {
				t.Errorf("left: %+v", found[:min(3, len(found))])
			}
			if found, p := run(t, s, rebuild.Options{}); len(found) > 0 || p.Repaired > 0 {
				t.Errorf("a second run: %+v, %+v", p, found)
			}
		})
	}
}

// unreadable cannot read one of the sessions.
type unreadable struct {
	*store.Store
	key string
}

func (u unreadable) InSnapshot(ctx context.Context, id store.SessionID, fn func(*store.Snapshot) error) error {
	if id.Key == u.key {
		return errBroken
	}
	return u.Store.InSnapshot(ctx, id, fn)
}

func TestVerifyingGoesOnBehindWhatItCannotRead(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s, e := verifytest.Open(t, url)
	for _, key := range []string{"a", "b", "c"} {
		long(t, e, key, 3)
	}
	if _, err := connect(t, url).Exec(t.Context(), `UPDATE sessions SET epoch = 9 WHERE session_key = 'c'`); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	p, err := verify.All(t.Context(), unreadable{s, "b"}, func(d verify.Difference) error {
		found[d.SessionKey] += d.What
		return nil
	}, func(verify.Progress) {})
	if err != nil || p.Failed != 1 || p.Sessions != 3 || found["b"] != "unread" || found["c"] != "epoch" || found["a"] != "" {
		t.Errorf("%+v, %v, %v", p, found, err)
	}
}
