package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/engined/engined/internal/store/db"
)

// Every query of a tenant's says so in its text. Row level security is a second
// line behind that: a query that forgot to would find nothing of others. Where
// it is on, a transaction of a tenant's begins by becoming the role TenantRole and
// naming the tenant, both until its end and in the same round trip, so that
// nothing stays behind on a connection that others use next.

// TenantRole is the role to which the policies of tenants' tables apply.
const TenantRole = "engined_tenant"

// of runs queries about one tenant.
func (s *Store) of(tenant string) *db.Queries {
	if !s.cfg.RowSecurity {
		return s.everyone
	}
	return db.New(tenantPool{s.pool, tenant})
}

// unfiltered runs queries about one tenant that no policy may touch: the
// operators of text search are not leakproof, so under a policy Postgres would
// look at all rows of the tenant instead of their index. These queries name the
// tenant in their text alone.
func (s *Store) unfiltered() *db.Queries { return s.everyone }

// within runs fn in a transaction about one tenant.
func (s *Store) within(ctx context.Context, tenant string, fn func(*db.Queries) error) error {
	return s.begin(ctx, tenant, "begin", fn)
}

// inSnapshot runs fn on the database as it is at one moment.
func (s *Store) inSnapshot(ctx context.Context, tenant string, fn func(*db.Queries) error) error {
	return s.begin(ctx, tenant, "begin isolation level repeatable read read only"+unhurried, fn)
}

// withinUnhurried is within for a fn that computes between its statements.
func (s *Store) withinUnhurried(ctx context.Context, tenant string, fn func(*db.Queries) error) error {
	return s.begin(ctx, tenant, "begin"+unhurried, fn)
}

// unhurried lets a transaction idle for longer than others may: who reads a page
// of a log computes what it says before it reads the next.
const unhurried = "; set local idle_in_transaction_session_timeout = '5min'"

func (s *Store) begin(ctx context.Context, tenant, begin string, fn func(*db.Queries) error) error {
	if s.cfg.RowSecurity {
		// In hexadecimal there is nothing to quote.
		begin += fmt.Sprintf("; select set_config('role', '%s', true), set_config('engined.tenant', convert_from('\\x%s', 'UTF8'), true)",
			TenantRole, hex.EncodeToString([]byte(tenant)))
	}
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error { return fn(s.everyone.WithTx(tx)) })
}

// become is the first statement of a tenant's implicit transaction.
const become = `select set_config('role', 'engined_tenant', true), set_config('engined.tenant', $1, true)`

// tenantPool runs each statement in a transaction of a tenant's, in one round
// trip: statements that are sent together are one transaction.
type tenantPool struct {
	pool   *pgxpool.Pool
	tenant string
}

var _ db.DBTX = tenantPool{}

func (p tenantPool) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	var b pgx.Batch
	b.Queue(become, p.tenant)
	b.Queue(sql, args...)
	results := p.pool.SendBatch(ctx, &b)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // it says the same
		return nil, err
	}
	return results, nil
}

// Exec implements db.DBTX.
func (p tenantPool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	// The commit comes with the end, and so do its errors.
	if end := results.Close(); err == nil {
		err = end
	}
	return tag, err
}

// Query implements db.DBTX.
func (p tenantPool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	results, err := p.send(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close() // as above
		return nil, err
	}
	return &tenantRows{Rows: rows, results: results}, nil
}

// QueryRow implements db.DBTX.
func (p tenantPool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	results, err := p.send(ctx, sql, args)
	return tenantRow{results, err}
}

// tenantRows end their transaction with the last row, so that an error of the
// commit is seen where errors of the rows are.
type tenantRows struct {
	pgx.Rows

	results pgx.BatchResults
	ended   bool
	err     error
}

// Next implements pgx.Rows.
func (r *tenantRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.end()
	return false
}

// Err implements pgx.Rows.
func (r *tenantRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// Close implements pgx.Rows.
func (r *tenantRows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *tenantRows) end() {
	if !r.ended {
		r.ended, r.err = true, r.results.Close()
	}
}

type tenantRow struct {
	results pgx.BatchResults
	err     error
}

// Scan implements pgx.Row.
func (r tenantRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	err := r.results.QueryRow().Scan(dest...)
	if end := r.results.Close(); err == nil {
		err = end
	}
	return err
}

// LeaveRowsUnsecured gives Config.RowSecurity up. It is called before the store is used.
func (s *Store) LeaveRowsUnsecured() { s.cfg.RowSecurity = false }

// CanSecureRows tells whether the database role may become TenantRole, and
// whether the tables are ready for it.
func (s *Store) CanSecureRows(ctx context.Context) (bool, error) {
	ok, err := s.everyone.CanSecureRows(ctx)
	if err != nil {
		return false, fmt.Errorf("row security: %w", errUnavailable(err))
	}
	return ok, nil
}

// secureTables makes TenantRole usable where it is not, as after a restore into
// another server: roles are not in a dump. Where this role may not, it stays
// unusable, which nodes tell.
func secureTables(ctx context.Context, url string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	q := db.New(conn)
	if ok, err := q.CanSecureRows(ctx); err != nil || ok {
		return err
	}
	if err := giveWay(ctx, conn); err != nil {
		return err
	}
	const forbidden = "42501"
	err = q.SecureTables(ctx)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == forbidden {
		return nil
	}
	return err
}

// withinAll runs fn in a transaction about all tenants.
func (s *Store) withinAll(ctx context.Context, fn func(*db.Queries) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return fn(s.everyone.WithTx(tx)) })
}
