package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/testdb"
)

// TestEncryptedSessionsAreFoundWithoutReadingTheTenants: a search of a whole tenant
// asks for them each time, most often where there are none.
func TestEncryptedSessionsAreFoundWithoutReadingTheTenants(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testdb.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	sealed := uuid.New()
	const columns = `INSERT INTO sessions (tenant_id, sid, session_key, head, host_head, epoch, leaf_seq, leaf_offset, sealed) `
	for _, fill := range []string{
		columns + `SELECT t, gen_random_uuid(), n::text, 1, 1, 1, 1, 1, false FROM unnest('{plain,mixed}'::text[]) t, generate_series(1, 3000) n`,
		columns + `VALUES ('mixed', '` + sealed.String() + `', 'sealed', 1, 1, 1, 1, 1, true)`,
		`ANALYZE sessions`,
	} {
		if _, err := conn.Exec(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	// Within one transaction, or its counters are sent off between two looks.
	if _, err := conn.Exec(t.Context(), `BEGIN`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, tenant string
		sids         []uuid.UUID
		want         bool
	}{
		{"none of a tenant's", "plain", []uuid.UUID{}, false},
		{"one of a tenant's", "mixed", []uuid.UUID{}, true},
		{"the named one", "mixed", []uuid.UUID{uuid.New(), sealed}, true},
		{"another one", "mixed", []uuid.UUID{uuid.New()}, false},
		{"another tenant's", "plain", []uuid.UUID{sealed}, false},
	} {
		before := rowsRead(t, conn)
		got, err := db.New(conn).SealedAmong(t.Context(), db.SealedAmongParams{TenantID: c.tenant, Sids: c.sids})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if n := rowsRead(t, conn) - before; got != c.want || n > len(c.sids)+1 {
			t.Errorf("%s: %v with %d rows read, want %v", c.what, got, n, c.want)
		}
	}
}

// rowsRead is how many rows of the sessions this connection has read.
func rowsRead(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'sessions'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
