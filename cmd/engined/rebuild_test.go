package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify/verifytest"
)

func TestRebuildRepairsWhatDoctorFinds(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	_, e := verifytest.Open(t, db)
	verifytest.Life(t, e, "k")
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	change := func(sql string) {
		t.Helper()
		if tag, err := conn.Exec(t.Context(), sql); err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s, %v", tag, err)
		}
	}
	change(`UPDATE sessions SET head = head - 1, epoch = epoch + 3`)
	change(`UPDATE events SET role = role + 1 WHERE seq = 2`)

	if got := engined(t, "doctor", "--verify", "--database-url", db); got.code != exitFailure {
		t.Fatalf("doctor: %+v", got)
	}
	dry := engined(t, "rebuild", "--dry-run", "--json", "--database-url", db).ok(t)
	var told struct {
		Changes []struct {
			SessionKey, What string
			Derivable        bool
		}
	}
	if err := json.Unmarshal([]byte(dry.out), &told); err != nil || len(told.Changes) < 6 || !told.Changes[0].Derivable {
		t.Fatalf("%s, %v", dry.out, err)
	}
	one := engined(t, "rebuild", "--session", "k", "--database-url", db).ok(t)
	if !strings.Contains(one.out, "1 session with") || strings.Contains(one.out, "k fork") {
		t.Errorf("one session: %s", one.out)
	}
	if got := engined(t, "doctor", "--verify", "--database-url", db); got.code != exitFailure || strings.Contains(got.out, " k (") || !strings.Contains(got.out, "k fork") {
		t.Errorf("after one session: %+v", got)
	}
	all := engined(t, "rebuild", "--database-url", db).ok(t)
	if !strings.Contains(all.out, "2 sessions with") || !strings.Contains(all.err, "search: ") || !strings.Contains(all.err, "stream: ") {
		t.Errorf("all: %+v", all)
	}
	engined(t, "doctor", "--verify", "--database-url", db).ok(t)
	if again := engined(t, "rebuild", "--what", "facts,states,keys", "--database-url", db).ok(t); !strings.Contains(again.out, "0 differences repaired") {
		t.Errorf("again: %+v", again)
	}

	change(`DELETE FROM events WHERE seq = 3`)
	if got := engined(t, "rebuild", "--what", "facts,states,keys", "--database-url", db); got.code != exitFailure || !strings.Contains(got.out, "✗ t k (") || !strings.Contains(got.err, "a backup may") {
		t.Errorf("lost: %+v", got)
	}
	for _, args := range [][]string{{"--what", "all"}, {"--session", "k", "--what", "search"}} {
		if got := engined(t, append([]string{"rebuild", "--database-url", db}, args...)...); got.code != exitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := engined(t, "rebuild", "--session", "nobody", "--database-url", db); got.code != exitFailure {
		t.Errorf("an unknown session: %+v", got)
	}
}
