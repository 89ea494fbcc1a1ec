package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/config"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/hooks"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/window"
	"github.com/engined/engined/internal/worker"
)

func (a *App) openBus(ctx context.Context) error {
	opts := bus.Options{
		URL: a.cfg.NATSURL, Name: "engined", Replicas: a.cfg.NATSReplicas, CredsFile: a.cfg.NATSCreds,
		CAFile: a.cfg.NATSCA, CertFile: a.cfg.NATSCert, KeyFile: a.cfg.NATSKey, Log: a.log,
	}
	if a.nats != nil {
		opts = bus.Options{InProcess: a.nats, Name: "engined", Log: a.log}
	}
	b, err := bus.Connect(ctx, opts)
	if err != nil {
		return err
	}
	a.bus = b
	a.onClose("bus", b.Close)
	return nil
}

func (a *App) makeEngines(ctx context.Context) error {
	publisher, err := a.bus.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		return err
	}
	if a.summarizers, err = a.makeSummarizers(); err != nil {
		return err
	}
	notifier := worker.NewNotifier(publisher)
	a.hooks = hooks.New(hooks.Config{
		Bus: notifier, URL: a.cfg.HookURL, Secret: a.cfg.HookSecret, Timeout: a.cfg.HookTimeout, Logger: a.log,
	})
	a.onClose("hooks", a.hooks.Stop)
	cfg := engine.Config{
		Summarizers: a.summarizers, Parallel: a.cfg.SummaryParallel, LastResortAfter: a.cfg.LastResortAfter,
		Log: a.store, Notifier: notifier, Hooks: a.hooks,
		Policy:        policy(a.cfg),
		Models:        modelsOf(a.cfg),
		RollingTurns:  a.cfg.RollingTurns,
		Prune:         pruning(a.cfg),
		Rewriting:     engine.Rewriting{On: a.cfg.RewriteResults},
		DefaultBudget: a.cfg.DefaultTokenBudget, MaxBatch: a.cfg.MaxBatchMessages,
		Limits: message.Limits{Bytes: int(a.cfg.MaxMessageBytes), Depth: a.cfg.MaxNesting},
		Logger: a.log,
	}
	if err := checkPolicies(a.cfg); err != nil {
		return err
	}
	a.engine = engine.NewLossless(cfg)
	a.onClose("lossless engine", a.engine.Dispose)
	legacy := engine.NewLegacy(cfg, nil)
	a.onClose("legacy engine", legacy.Dispose)
	rolling := engine.NewRolling(cfg)
	a.onClose("rolling engine", rolling.Dispose)
	// Without an indexer: a window waits for no index.
	cfg.Passages = retrieval.NewSearcher(a.store, nil)
	recall := engine.NewRecall(cfg)
	a.onClose("recall engine", recall.Dispose)
	return a.fillSlot(ctx, a.engine, legacy, rolling, recall)
}

// pruning are the settings of windows' old tool results.
func pruning(cfg config.Config) window.Pruning {
	return window.Pruning{
		Mode: map[string]window.PruneMode{
			"off": window.PruneOff, "trim": window.PruneTrim, "clear": window.PruneClear,
		}[cfg.PruneResults],
		KeepAssistants: cfg.PruneKeep,
	}
}

// fillSlot registers the built-in engines and has the configured one serve.
// One that is unknown or broken is told of, and the default engine serves.
func (a *App) fillSlot(ctx context.Context, builtin ...contextengine.Engine) error {
	deadlines, err := a.deadlines()
	if err != nil {
		return err
	}
	a.engines = engine.NewRegistry(engine.RegistryConfig{Deadlines: deadlines, Logger: a.log})
	a.onClose("engines", a.engines.Close)
	for _, e := range builtin {
		err := a.engines.Register(engine.Registration{
			ID: e.Info().ID, Owner: engine.CoreOwner, Info: e.Info(), Shared: true,
			Factory: func(context.Context) (contextengine.Engine, error) { return e, nil },
			// What they wait for is Postgres: the call's own time is theirs.
			Deadlines: engine.Deadlines{Call: a.cfg.RequestTimeout},
		})
		if err != nil {
			return err
		}
	}
	for _, e := range a.cfg.RemoteEngines() {
		if err := a.engines.Register(a.remoteEngine(e)); err != nil {
			return err
		}
	}
	a.slot = a.engines.Slot(a.cfg.Engine)
	a.upkeep = engine.NewUpkeep(a.slot, engine.UpkeepConfig{})
	a.onClose("maintenance", a.upkeep.Stop)
	_, err = a.slot.Resolve(ctx)
	return err
}

// engineIDs are what the setting engine may name.
func (a *App) engineIDs() []string {
	var ids []string
	for _, e := range a.engines.Engines() {
		ids = append(ids, e.Info.ID)
	}
	return ids
}

// servingText says who serves, and why when it is not whom the setting names.
func (a *App) servingText() string {
	serving := a.engineList().Serving
	if serving == engine.SlotID(a.cfg.Engine) {
		return serving
	}
	if known := a.engineIDs(); !slices.Contains(known, a.cfg.Engine) {
		return fmt.Sprintf("%s, since there is no engine %q: there are %s", serving, a.cfg.Engine, strings.Join(known, ", "))
	}
	return serving + ", since " + a.cfg.Engine + " is set aside: engined engines says why"
}

// remoteEngine is asked who it is when it is first needed. Its client's own
// limits on time are beyond the guard's, which has the say.
func (a *App) remoteEngine(e config.RemoteEngine) engine.Registration {
	return engine.Registration{
		ID: e.ID, Owner: cmp.Or(e.Owner, "remote:"+e.ID), Deadlines: engine.Deadlines{Call: e.Timeout},
		Factory: func(ctx context.Context) (contextengine.Engine, error) {
			token, err := e.Token(os.LookupEnv)
			if err != nil {
				return nil, err
			}
			return remote.Connect(ctx, remote.Config{
				URL: e.URL, Token: token, Timeout: a.cfg.RequestTimeout, CompactTimeout: a.cfg.CompactTimeout + compactMargin,
				MaxAnswerBytes: a.cfg.MaxBatchBytes, MaxMessages: a.cfg.MaxBatchMessages,
			})
		},
	}
}

// deadlines are those of engines that are not built in. A call's is shorter
// than the caller's, so that it is known who kept whom waiting and the default
// engine has time to answer.
func (a *App) deadlines() (engine.Deadlines, error) {
	d := engine.Deadlines{
		Call: min(a.cfg.EngineTimeout, a.cfg.RequestTimeout*2/3),
		Of:   map[engine.Operation]time.Duration{engine.OpCompact: a.cfg.CompactTimeout},
	}
	for name, limit := range a.cfg.EngineTimeouts() {
		op := engine.Operation(name)
		if !slices.Contains(engine.CallOperations(), op) {
			return d, fmt.Errorf("engine-timeouts: %q is not one of %v", name, engine.CallOperations())
		}
		d.Of[op] = limit
	}
	return d, nil
}

func (a *App) startWorker(context.Context) error {
	if !a.roles.Worker {
		return nil
	}
	host, _ := os.Hostname() // a name only
	var preparer worker.Preparer
	if a.cfg.CompactionPrepare && len(a.cfg.SummarizerList) > 0 {
		preparer = a.slot
	}
	w := worker.New(worker.Config{
		Prepare: preparer, SoftMilli: softMilli(a.cfg),
		Debts: a.store, Bus: a.bus, Compactor: a.slot, Concurrency: a.cfg.WorkerConcurrency,
		SweepInterval: a.cfg.SweepInterval, SweepLease: a.cfg.SweepLease,
		Eraser: a.store, Retention: retentionOf(a.cfg), Keeping: keepingOf(a.cfg), RetentionInterval: a.cfg.RetentionInterval,
		Indexer: a.indexer(), IndexInterval: a.cfg.IndexInterval,
		Consume: bus.ConsumeOptions{AckWait: a.cfg.AckWait},
		Name:    fmt.Sprintf("%s-%d", host, os.Getpid()), Logger: a.log,
	})
	// The worker lives until it is stopped, not as long as the start.
	if err := w.Start(context.Background()); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	a.onClose("worker", w.Stop)
	return nil
}

// indexer writes the search index, in the worker's loop and when a search asks.
func (a *App) indexer() *retrieval.Indexer { return retrieval.NewIndexer(a.store, a.log) }
