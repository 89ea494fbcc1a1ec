package store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// Config says how to reach Postgres and how to group appends.
type Config struct {
	// URL is a Postgres connection string.
	URL string
	// MaxConns bounds the pool.
	MaxConns int32
	// StatementTimeout bounds every statement on the server's side.
	StatementTimeout time.Duration
	// PgBouncer switches prepared statements off, for transaction pooling.
	PgBouncer bool
	// RowSecurity has Postgres hold queries about a tenant to its rows; see
	// CanSecureRows.
	RowSecurity bool
	// DefaultBudget is the token budget of sessions that never reported one.
	DefaultBudget int64
	// DebtMilli is the share of the budget, in thousandths, above which a
	// session owes a compaction.
	DebtMilli int64
	// DebtMilliOf, if any, is the same for the sessions of a model; 0 leaves them
	// at DebtMilli.
	DebtMilliOf func(model string) int64
	// Lanes is how many batches may be in flight at once. A call of append_events
	// costs several times what one more item in it does, so few lanes with full
	// batches beat many; one a processor, 2 to 8, by default.
	Lanes int
	// ApplicationName shows in pg_stat_activity.
	ApplicationName string
	// Vault opens what is encrypted; nil where this process has no keys. Encrypt
	// has new sessions encrypted, and needs it.
	Vault   *vault.Vault
	Encrypt bool
	Log     *slog.Logger
}

func (c Config) debtMilliOf(model string) int64 {
	if c.DebtMilliOf == nil || model == "" {
		return c.DebtMilli
	}
	return cmp.Or(c.DebtMilliOf(model), c.DebtMilli)
}

func (c Config) withDefaults() Config {
	if c.MaxConns == 0 {
		c.MaxConns = 16
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = 30 * time.Second
	}
	if c.DefaultBudget == 0 {
		c.DefaultBudget = 128_000
	}
	if c.DebtMilli == 0 {
		c.DebtMilli = 850
	}
	if c.Lanes == 0 {
		c.Lanes = min(max(runtime.GOMAXPROCS(0), 2), 8)
	}
	if c.ApplicationName == "" {
		c.ApplicationName = "engined"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Store is a pool of connections and the lanes that group appends.
type Store struct {
	cfg  Config
	pool *pgxpool.Pool
	// everyone runs queries of all tenants; of and within those of one.
	everyone *db.Queries
	log      *slog.Logger
	lanes    []*lane
	eras     eraGate
	pins     pins
	sealings sealings
}

// Open connects. It does not migrate; see Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if cfg.Encrypt && cfg.Vault == nil {
		return nil, vault.ErrClosed
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	pc.MaxConns = cfg.MaxConns
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = cfg.ApplicationName
	if !cfg.PgBouncer {
		params["statement_timeout"] = strconv.FormatInt(cfg.StatementTimeout.Milliseconds(), 10)
		// No transaction of ours waits for anything but Postgres. One that idles
		// belongs to a process that is frozen, and may hold a session's lock.
		params["idle_in_transaction_session_timeout"] = "5000"
		// Every query of ours is a few index probes: planning it anew or
		// compiling it would cost more than running it.
		params["jit"] = "off"
		params["plan_cache_mode"] = "force_generic_plan"
	} else {
		// Types of parameters are asked for once and remembered here; what is sent
		// needs nothing of the connection it comes to. Guessing the types instead
		// fails on arrays of uuids.
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	s := &Store{cfg: cfg, log: cfg.Log.With("component", "store")}
	pc.ConnConfig.OnPgError = keepConnection
	// A new connection may lead to another cluster.
	pc.AfterConnect = func(context.Context, *pgx.Conn) error {
		s.eras.forget()
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	s.pool, s.everyone = pool, db.New(pool)
	s.lanes = newLanes(s, cfg.Lanes)
	if err := s.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Ping reports whether Postgres answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("postgres: %w", errUnavailable(err))
	}
	return nil
}

// Close waits for the appends in flight and closes the pool.
func (s *Store) Close() {
	for _, l := range s.lanes {
		l.close()
	}
	s.pool.Close()
}

// PoolStats are the numbers that metrics show.
type PoolStats struct{ Acquired, Idle, Max int32 }

// PoolStats reads the pool's counters.
func (s *Store) PoolStats() PoolStats {
	st := s.pool.Stat()
	return PoolStats{Acquired: st.AcquiredConns(), Idle: st.IdleConns(), Max: st.MaxConns()}
}

// URL is the connection string that the store was opened with.
func (s *Store) URL() string { return s.cfg.URL }
