package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

// tenantTables are the tables with a tenant.
func tenantTables(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 15 {
		t.Fatalf("%d tables", len(names))
	}
	return names
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// fillTable puts a row of a tenant into a table, whatever its columns are.
func fillTable(t *testing.T, conn *pgx.Conn, table, tenant string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT column_name, data_type FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = $1 AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'`, table)
	if err != nil {
		t.Fatal(err)
	}
	type column struct{ Name, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		t.Fatal(err)
	}
	var names, values []string
	for _, c := range columns {
		value := map[string]string{
			"text": "'x'", "uuid": "gen_random_uuid()", "bytea": "'\\x01'", "ARRAY": "'{}'", "boolean": "true", "xid8": "'1'",
			"timestamp with time zone": "now()", "date": "now()", "tsvector": "'x'", "jsonb": "'{}'",
		}[c.Type]
		if value == "" {
			value = "1" // some number
		}
		if c.Name == "tenant_id" {
			value = "'" + tenant + "'"
		}
		names, values = append(names, c.Name), append(values, value)
	}
	if table == "api_keys" { // their id is of all tenants
		values[slices.Index(names, "id")] = "'x" + tenant + "'"
	}
	sql := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(values, ", "))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestNoTableShowsAnotherTenant reads and writes every table as one tenant with
// statements that forgot to say whose rows they mean.
func TestNoTableShowsAnotherTenant(t *testing.T) {
	t.Parallel()
	conn := connect(t, testdb.New(t))
	ctx := t.Context()
	for _, table := range tenantTables(t, conn) {
		fillTable(t, conn, table, "a")
		fillTable(t, conn, table, "b")
		as := func(tenant, sql string) (n int64, err error) {
			tx, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			if tenant != "" {
				if _, err := tx.Exec(ctx, "SELECT set_config('role', 'engined_tenant', true), set_config('engined.tenant', $1, true)", tenant); err != nil {
					t.Fatal(err)
				}
			}
			tag, err := tx.Exec(ctx, sql)
			return tag.RowsAffected(), err
		}
		for _, sql := range []string{"SELECT * FROM %s", "UPDATE %s SET tenant_id = tenant_id", "DELETE FROM %s"} {
			sql = fmt.Sprintf(sql, table)
			for tenant, want := range map[string]int64{"": 2, "a": 1, "b": 1, "c": 0} {
				if n, err := as(tenant, sql); err != nil || n != want {
					t.Errorf("%s as %q: %d rows, want %d, %v", sql, tenant, n, want, err)
				}
			}
		}
		if n, err := as("b", fmt.Sprintf("UPDATE %s SET tenant_id = 'a'", table)); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("%s: a row is given away: %d, %v", table, n, err)
		}
		if n, err := as("b", fmt.Sprintf("INSERT INTO %[1]s OVERRIDING SYSTEM VALUE TABLE %[1]s", table)); err == nil {
			t.Errorf("%s: %d rows doubled", table, n)
		}
		// Without a tenant there is nothing at all.
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, "SELECT set_config('role', 'engined_tenant', true)"); err != nil {
			t.Fatal(err)
		}
		if tag, err := tx.Exec(ctx, "TABLE "+table); err != nil || tag.RowsAffected() != 0 {
			t.Errorf("%s without a tenant: %v, %v", table, tag, err)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingOfATenantStaysOnAConnection uses one connection for two tenants,
// and for none, in each way of sending statements.
func TestNothingOfATenantStaysOnAConnection(t *testing.T) {
	t.Parallel()
	for name, bouncer := range map[string]bool{"prepared": false, "for a pooler": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, err := storetest.Open(t, ctx, store.Config{URL: testdb.New(t), MaxConns: 1, RowSecurity: true, PgBouncer: bouncer})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			for _, name := range []string{"a", "b", `o'dd \ "name"`} {
				it := item("s", msg(`{"role":"user","content":"of `+strings.Trim(name, `"\`)+`"}`, 5))
				it.Tenant = name
				mustAppend(t, s, it)
				if list, err := s.Sessions(ctx, name, "", "", 10); err != nil || len(list) != 1 || list[0].Tenant != name {
					t.Errorf("sessions of %s: %+v, %v", name, list, err)
				}
				cur, err := s.Session(ctx, name, "s")
				if err != nil {
					t.Fatal(err)
				}
				err = s.InSnapshot(ctx, store.SessionID{Tenant: name, SID: cur.SID}, func(v *store.Snapshot) error {
					_, err := v.Session(ctx)
					return err
				})
				if err != nil {
					t.Errorf("a snapshot of %s: %v", name, err)
				}
				if _, err := s.Session(ctx, name, "none"); err == nil {
					t.Error("a session that is not there")
				}
				if all, err := s.Keys(ctx, ""); err != nil || len(all) != 0 { // as no tenant
					t.Errorf("%v, %v", all, err)
				}
			}
		})
	}
}

// TestAForgottenTenantFindsNothing asks as one tenant about the other's session
// by its id, as a query without a tenant in its text would.
func TestAForgottenTenantFindsNothing(t *testing.T) {
	t.Parallel()
	dsn := testdb.New(t)
	s := openURL(t, dsn)
	mustAppend(t, s, item("s", msg(`{"role":"user","content":"hi"}`, 5)))
	conn := connect(t, dsn)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "SELECT set_config('role', 'engined_tenant', true), set_config('engined.tenant', 'other', true)"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM events e JOIN sessions s ON s.sid = e.sid").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
	if ok, err := s.CanSecureRows(t.Context()); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestTheRoleIsMadeAgain loses the role, as a restore into another server does.
func TestTheRoleIsMadeAgain(t *testing.T) {
	t.Parallel()
	dsn, err := testdb.Cluster(t).EnsureDatabase(t.Context(), "engined")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := store.Migrate(t.Context(), dsn, nil); err != nil {
			t.Fatal(err)
		}
		s := openURL(t, dsn)
		if ok, err := s.CanSecureRows(t.Context()); err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		mustAppend(t, s, item("s", msg(`{"role":"user","content":"hi"}`, 5)))
		s.Close()
		if _, err := connect(t, dsn).Exec(t.Context(), "DROP OWNED BY engined_tenant; DROP ROLE engined_tenant"); err != nil {
			t.Fatal(err)
		}
	}
}
