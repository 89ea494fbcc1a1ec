package store

import (
	"testing"

	"github.com/engined/engined/internal/testdb"
)

// What a reader of a log computes between two pages may take longer than a
// transaction may idle that holds locks.
func TestReadersOfLogsMayComputeBetweenPages(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for begin, want := range map[string]string{"begin": "5s", "begin isolation level repeatable read read only" + unhurried: "5min", "begin" + unhurried: "5min"} {
		conn, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), begin); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := conn.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %s, %v", begin, got, err)
		}
		if _, err := conn.Exec(t.Context(), `rollback`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&got); err != nil || got != "5s" {
			t.Errorf("behind %s: %s, %v", begin, got, err)
		}
		conn.Release()
	}
}
