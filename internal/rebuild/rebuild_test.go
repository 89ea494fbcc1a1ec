package rebuild_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/rebuild"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
	"github.com/engined/engined/internal/verify/verifytest"
)

func run(t *testing.T, s *store.Store, o rebuild.Options) ([]rebuild.Change, rebuild.Progress) {
	t.Helper()
	var out []rebuild.Change
	p, err := rebuild.Run(t.Context(), s, o, func(c rebuild.Change) error {
		out = append(out, c)
		return nil
	}, func(rebuild.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if p.Changes != int64(len(out)) {
		t.Errorf("progress %+v, told %d", p, len(out))
	}
	return out, p
}

func differences(t *testing.T, s *store.Store) (out []verify.Difference) {
	t.Helper()
	_, err := verify.All(t.Context(), s, func(d verify.Difference) error {
		out = append(out, d)
		return nil
	}, func(verify.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestEveryDerivableCorruptionIsRepaired(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s, e := verifytest.Open(t, url)
	verifytest.Life(t, e, "k")
	if found, _ := run(t, s, rebuild.Options{}); len(found) > 0 {
		t.Fatalf("rebuilt what nobody changed: %+v", found)
	}
	conn := connect(t, url)
	for _, c := range verifytest.Corruptions() {
		t.Run(c.Name, func(t *testing.T) {
			verifytest.Backup(t, conn, true)
			defer verifytest.Backup(t, conn, false)
			tag, err := conn.Exec(t.Context(), c.SQL)
			if err != nil || tag.RowsAffected() == 0 {
				t.Fatalf("%s, %v", tag, err)
			}
			before := differences(t, s)
			if len(before) == 0 {
				t.Fatal("verify found nothing")
			}
			if found, p := run(t, s, rebuild.Options{DryRun: true}); len(found) == 0 || p.Repaired != 0 {
				t.Fatalf("a dry run found %+v, %+v", found, p)
			}
			if diff := cmp.Diff(before, differences(t, s)); diff != "" {
				t.Fatalf("a dry run changed something:\n%s", diff)
			}
			found, p := run(t, s, rebuild.Options{})
			told := false
			for _, x := range found {
				told = told || x.Derivable == c.Derivable && x.Detail != ""
			}
			if !told || (p.Lost > 0) == c.Derivable {
				t.Errorf("told %+v, %+v", found, p)
			}
			after := differences(t, s)
			if c.Derivable && len(after) > 0 {
				t.Errorf("not repaired: %+v\nrebuild said %+v", after, found)
			}
			if !c.Derivable && len(after) == 0 {
				t.Error("repaired what no log tells")
			}
			again, p := run(t, s, rebuild.Options{})
			if int64(len(again)) != p.Lost || p.Repaired > 0 {
				t.Errorf("a second run repaired %+v", again)
			}
			if c.Derivable {
				sameAsKept(t, conn)
			}
		})
	}
}

// sameAsKept compares what is stored with what Backup kept before it was changed.
func sameAsKept(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range []string{"sessions", "events", "event_keys", "compaction_debt", "session_states"} {
		cols := "*"
		if table == "session_states" {
			cols = "tenant_id, sid, as_of, epoch"
		}
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM ((SELECT `+cols+` FROM `+table+` EXCEPT SELECT `+cols+` FROM kept_`+table+`) UNION ALL (SELECT `+cols+` FROM kept_`+table+` EXCEPT SELECT `+cols+` FROM `+table+`)) x`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			t.Errorf("%s: %d rows are not what they were", table, n)
		}
	}
}

func states(t *testing.T, conn *pgx.Conn) map[string]map[int64]events.State {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT s.session_key, x.as_of, x.state FROM session_states x JOIN sessions s USING (tenant_id, sid)`)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[int64]events.State{}
	for rows.Next() {
		var key string
		var asOf int64
		var raw []byte
		if err := rows.Scan(&key, &asOf, &raw); err != nil {
			t.Fatal(err)
		}
		st, err := events.DecodeState(raw)
		if err != nil {
			t.Fatal(err)
		}
		// What the log does not tell.
		st.ForcedAt, st.Factors = 0, nil
		if out[key] == nil {
			out[key] = map[int64]events.State{}
		}
		out[key][asOf] = st
	}
	return out
}

func TestStatesAreDerivedAsTheyWereMade(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s, e := verifytest.Open(t, url)
	verifytest.Life(t, e, "k")
	leaveAndComeBack(t, e, "behind a reset")
	conn := connect(t, url)
	want := states(t, conn)
	if len(want["k"]) < 8 || len(want["k fork"]) < 2 || len(want["behind a reset"]) != 3 {
		t.Fatalf("%d, %d and %d states", len(want["k"]), len(want["k fork"]), len(want["behind a reset"]))
	}
	// All but what a fork begins with, which its parent tells.
	if _, err := conn.Exec(t.Context(), `DELETE FROM session_states WHERE as_of > 1`); err != nil {
		t.Fatal(err)
	}
	found, p := run(t, s, rebuild.Options{Session: "k"})
	if p.Lost > 0 || p.Sessions != 1 {
		t.Fatalf("%+v %+v", found, p)
	}
	if found, p = run(t, s, rebuild.Options{}); p.Lost > 0 {
		t.Fatalf("%+v", found)
	}
	if diff := cmp.Diff(want, states(t, conn)); diff != "" {
		t.Errorf("states (-made +derived):\n%s", diff)
	}
	if found := differences(t, s); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// leaveAndComeBack switches to a branch that began behind a reset, so that what
// the reset hid stays hidden.
func leaveAndComeBack(t *testing.T, e *engine.Lossless, key string) {
	t.Helper()
	s := verifytest.On(key)
	write := func() int64 {
		t.Helper()
		res, err := e.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: s, Messages: verifytest.Turns(4)})
		if err != nil {
			t.Fatal(err)
		}
		return res.Head
	}
	write()
	keep := int64(9)
	if _, err := e.Reset(t.Context(), s, &keep, "some of it"); err != nil {
		t.Fatal(err)
	}
	left := write()
	for _, to := range []int64{left - 8, left} {
		if _, err := e.Rewind(t.Context(), s, to); err != nil {
			t.Fatal(err)
		}
		write()
	}
}
