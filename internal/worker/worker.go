package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/store"
)

// Debts is the part of the store that the loops use.
type Debts interface {
	SessionBySID(ctx context.Context, tenant string, sid uuid.UUID) (store.Session, error)
	DueDebt(ctx context.Context, limit int, lease time.Duration) ([]store.Debt, error)
	DebtOf(ctx context.Context, tenant string, sid uuid.UUID) (store.Debt, bool, error)
	PostponeDebt(ctx context.Context, tenant string, sid uuid.UUID, delay time.Duration, why string) error
	ForgiveDebt(ctx context.Context, tenant string, sid uuid.UUID) error
	SettleDebt(ctx context.Context, d store.Debt) error
	RecordAttempt(ctx context.Context, a store.Attempt) error
	Notices(ctx context.Context, after store.Cursor, limit int) ([]store.Notice, error)
	WorthPreparing(ctx context.Context, tenants []string, sids []uuid.UUID, softMilli int64) ([]store.SoftSession, error)
	DueRedo(ctx context.Context, limit int, lease time.Duration) ([]store.Redo, error)
	PostponeRedo(ctx context.Context, tenant string, sid uuid.UUID, delay time.Duration, why string) error
	PayRedo(ctx context.Context, tenant string, sid uuid.UUID) error
	Checkpoint(ctx context.Context, name string) (store.Cursor, error)
	SaveCheckpoint(ctx context.Context, name string, c store.Cursor) error
	SweepChildren(ctx context.Context, limit int) (removed int, more bool, err error)
}

// Compactor pays a session's debt.
type Compactor interface {
	Owed(ctx context.Context, s store.Session, d store.Debt) (contextengine.CompactResult, error)
	// Redo has models write what a rule wrote in their place; false is nothing to do.
	Redo(ctx context.Context, s store.Session) (bool, error)
}

// Indexer follows the log for search.
type Indexer interface {
	// Once indexes some of what is new; more tells that there was something.
	Once(ctx context.Context) (more bool, err error)
}

// Config configures a worker.
type Config struct {
	Debts     Debts
	Bus       *bus.Bus
	Compactor Compactor
	// Name tells this worker from others in the attempts it records.
	Name string
	// Concurrency is how many sessions are compacted at once, default 2.
	Concurrency int
	// SweepInterval is how often due debts are looked for, default 5 s;
	// SweepLease how long a published debt is left to the workers, default 60 s.
	SweepInterval, SweepLease time.Duration
	// Prepare, if any, makes drafts for sessions over SoftMilli thousandths of
	// their budget.
	Prepare   Preparer
	SoftMilli int64
	// Retry is the pause after a failed compaction, 2 s to 10 min.
	Retry bus.Backoff
	// RedoInterval is how often summaries that a rule wrote in a model's place are
	// looked for, default 15 s; RedoRetry the pause after a failed try to write
	// them anew, 1 min to 1 h.
	RedoInterval time.Duration
	RedoRetry    bus.Backoff
	// RelayInterval is how often the relay looks for new events, default 1 s.
	RelayInterval time.Duration
	// Eraser, if any, finishes erasures and erases what Retention has expired and
	// Keeping has no room for, looked for every RetentionInterval, default 10 min. EraseInterval
	// is how often broken-off erasures are looked for, default 15 s.
	Eraser            Eraser
	Retention         store.Retention
	Keeping           store.Keeping
	EraseInterval     time.Duration
	RetentionInterval time.Duration
	// ChildrenInterval is how often sub-agents that never began are looked for,
	// default 30 s.
	ChildrenInterval time.Duration
	// Indexer keeps the search index; nil leaves that to others. IndexInterval is
	// how often it looks for new events, default 1 s.
	Indexer       Indexer
	IndexInterval time.Duration
	Consume       bus.ConsumeOptions
	Logger        *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "worker"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 2
	}
	if c.SweepInterval == 0 {
		c.SweepInterval = 5 * time.Second
	}
	if c.SweepLease == 0 {
		c.SweepLease = time.Minute
	}
	if c.ChildrenInterval == 0 {
		c.ChildrenInterval = 30 * time.Second
	}
	if c.RelayInterval == 0 {
		c.RelayInterval = time.Second
	}
	if c.EraseInterval == 0 {
		c.EraseInterval = 15 * time.Second
	}
	if c.RetentionInterval == 0 {
		c.RetentionInterval = 10 * time.Minute
	}
	if c.Retry == (bus.Backoff{}) {
		c.Retry = bus.Backoff{Min: 2 * time.Second, Max: 10 * time.Minute}
	}
	if c.RedoInterval == 0 {
		c.RedoInterval = 15 * time.Second
	}
	if c.RedoRetry == (bus.Backoff{}) {
		c.RedoRetry = bus.Backoff{Min: time.Minute, Max: time.Hour}
	}
	if c.IndexInterval == 0 {
		c.IndexInterval = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("component", "worker")
	if c.Consume.Durable == "" {
		c.Consume.Durable = bus.CompactorDurable
	}
	c.Consume.Concurrency = c.Concurrency
	return c
}

// Worker compacts, sweeps and relays.
type Worker struct {
	cfg      Config
	sweep    *loop
	children *loop
	relay    *loop
	index    *loop
	erase    []*loop
	redo     *loop
	consumer *bus.Consumer
}

// New makes a worker; Start runs it.
func New(cfg Config) *Worker {
	cfg = cfg.withDefaults()
	w := &Worker{cfg: cfg}
	w.sweep = &loop{name: "sweep of debts", interval: cfg.SweepInterval, log: cfg.Logger, step: w.sweepOnce}
	w.children = &loop{name: "sweep of sub-agents", interval: cfg.ChildrenInterval, log: cfg.Logger, step: w.sweepChildren}
	w.relay = &loop{name: "relay", interval: cfg.RelayInterval, log: cfg.Logger, step: (&relay{cfg: cfg}).once}
	w.erase = eraseLoops(cfg)
	w.redo = &loop{name: "redo of summaries", interval: cfg.RedoInterval, log: cfg.Logger, step: w.redoOnce}
	if cfg.Indexer != nil {
		w.index = &loop{name: "search index", interval: cfg.IndexInterval, log: cfg.Logger, step: cfg.Indexer.Once}
	}
	return w
}

// Start returns once the worker runs. With NATS away it runs too and begins
// when NATS is there. ctx bounds the worker's life.
func (w *Worker) Start(ctx context.Context) error {
	opts := w.cfg.Consume
	opts.OnDead = w.dead
	consumer, err := w.cfg.Bus.ConsumeJobs(ctx, opts, w.handle)
	if err != nil {
		return err
	}
	w.consumer = consumer
	w.sweep.start(ctx)
	w.children.start(ctx)
	w.relay.start(ctx)
	if w.index != nil {
		w.index.start(ctx)
	}
	for _, l := range w.erase {
		l.start(ctx)
	}
	w.redo.start(ctx)
	return nil
}

// Stop lets running compactions finish until ctx ends; their jobs go to other
// workers then.
func (w *Worker) Stop(ctx context.Context) error {
	err := errors.Join(w.sweep.stop(ctx), w.children.stop(ctx), w.relay.stop(ctx), w.redo.stop(ctx))
	for _, l := range w.erase {
		err = errors.Join(err, l.stop(ctx))
	}
	if w.index != nil {
		err = errors.Join(err, w.index.stop(ctx))
	}
	if w.consumer != nil {
		err = errors.Join(err, w.consumer.Stop(ctx))
	}
	return err
}
