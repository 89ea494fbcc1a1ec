package store_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
	"github.com/engined/engined/internal/verify/verifytest"
)

// feed reads the whole feed behind a cursor and answers with "session seq".
func feed(t *testing.T, s *store.Store, after store.Cursor) (seen []string, at store.Cursor) {
	t.Helper()
	at = after
	for {
		page, err := s.FeedWithin(t.Context(), verifytest.Tenant, at, 7, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return seen, at
		}
		for _, e := range page {
			seen = append(seen, fmt.Sprint(e.SessionKey, " ", e.Seq))
			at = e.Cursor
		}
	}
}

// inOrder fails unless each session's events came once, in order, from seq 1 on.
func inOrder(t *testing.T, seen []string, want int) {
	t.Helper()
	next := map[string]int64{}
	for _, line := range seen {
		var seq int64
		var key string
		for i := len(line) - 1; i >= 0; i-- {
			if line[i] == ' ' {
				key = line[:i]
				_, _ = fmt.Sscan(line[i+1:], &seq)
				break
			}
		}
		if next[key]++; seq != next[key] {
			t.Fatalf("%s follows %d", line, next[key]-1)
		}
	}
	if len(seen) != want {
		t.Errorf("%d events, want %d", len(seen), want)
	}
}

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// tool finds one of Postgres' own programs, as new as the server.
func tool(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv("ENGINED_PG_BIN"); dir != "" {
		if p := filepath.Join(dir, name); osexec.Command(p, "--version").Run() == nil {
			return p
		}
	}
	if p, err := osexec.LookPath(name); err == nil {
		return p
	}
	t.Skipf("%s is not on this machine: dump and restore can't be tried", name)
	return ""
}

func TestRestoredIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	dump, restore := tool(t, "pg_dump"), tool(t, "pg_restore")
	from := testdb.New(t)
	s, e := verifytest.Open(t, from)
	verifytest.Life(t, e, "k")
	before, cursor := feed(t, s, store.Cursor{})
	// Other tests' transactions may hold back the newest events in this cluster.
	inOrder(t, before, len(before))
	if cursor.Era != 1 {
		t.Fatalf("era %d behind %d events", cursor.Era, len(before))
	}
	stored := count(t, from, `SELECT count(*) FROM events`)

	to, err := testdb.Cluster(t).EnsureDatabase(t.Context(), "restored")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "engined.dump")
	if out, err := osexec.CommandContext(t.Context(), dump, "--format=custom", "--file="+file, from).CombinedOutput(); err != nil {
		t.Skipf("pg_dump: %v: %s", err, out)
	}
	if out, err := osexec.CommandContext(t.Context(), restore, "--no-owner", "--no-privileges", "--exit-on-error", "--dbname="+to, file).CombinedOutput(); err != nil {
		t.Fatalf("pg_restore: %v: %s", err, out)
	}

	s, e = verifytest.Open(t, to)
	for _, after := range []store.Cursor{{}, cursor} {
		if _, err := s.FeedWithin(t.Context(), verifytest.Tenant, after, 10, 1<<20); !errors.Is(err, store.ErrFeedClosed) {
			t.Errorf("the feed of an unknown cluster: %v", err)
		}
	}
	if n, err := s.Notices(t.Context(), store.Cursor{}, 10); len(n) > 0 || err != nil {
		t.Errorf("the relay reads %d notices, %v", len(n), err)
	}
	write := func(key string) {
		t.Helper()
		_, err := e.IngestBatch(t.Context(), contextengine.IngestBatchParams{Session: verifytest.On(key), Messages: verifytest.Turns(2)})
		if err != nil {
			t.Fatalf("an append: %v", err)
		}
	}
	write("k")
	write("new")

	if era, err := s.OpenEra(t.Context(), nil); err != nil || era.Era != 2 || !era.Open() || era.Here == "" {
		t.Fatalf("%+v, %v", era, err)
	}
	if _, err := s.FeedWithin(t.Context(), verifytest.Tenant, cursor, 10, 1<<20); !errors.Is(err, store.ErrFeedEra) {
		t.Errorf("an old cursor: %v", err)
	}
	seen, at := feed(t, s, store.Cursor{})
	inOrder(t, seen, stored+16)
	write("k")
	write("k fork")
	more, at := feed(t, s, at)
	inOrder(t, append(seen, more...), stored+32)
	if at.Era != 2 || len(more) != 16 {
		t.Errorf("cursor %+v behind %d more", at, len(more))
	}
	if n, err := s.Notices(t.Context(), store.Cursor{}, 10); len(n) == 0 || err != nil {
		t.Errorf("the relay reads %d notices, %v", len(n), err)
	}
	p, err := verify.All(t.Context(), s, func(d verify.Difference) error {
		t.Errorf("%+v", d)
		return nil
	}, func(verify.Progress) {})
	if err != nil || p.Sessions != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if other, err := s.OpenEra(t.Context(), nil); err != nil || other.Era != 3 {
		t.Errorf("once more: %+v, %v", other, err)
	}
	again, _ := feed(t, s, store.Cursor{})
	inOrder(t, again, stored+32)
}
