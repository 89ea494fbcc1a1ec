package main

import (
	"context"
	"fmt"
	"os"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/message"
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

func (a *App) makeEngines(context.Context) error {
	publisher, err := a.bus.NewPublisher(bus.PublisherOptions{})
	if err != nil {
		return err
	}
	cfg := engine.Config{
		Log: a.store, Notifier: worker.NewNotifier(publisher),
		Policy: compact.Policy{
			Threshold: a.cfg.CompactionThreshold, SoftThreshold: 0.8 * a.cfg.CompactionThreshold,
			TargetShare: a.cfg.CompactionTarget, TailShare: a.cfg.CompactionTail,
		},
		DefaultBudget: a.cfg.DefaultTokenBudget, MaxBatch: a.cfg.MaxBatchMessages,
		Limits: message.Limits{Bytes: int(a.cfg.MaxMessageBytes), Depth: a.cfg.MaxNesting},
		Logger: a.log,
	}
	if err := cfg.Policy.WithDefaults().Validate(); err != nil {
		return err
	}
	a.engine = engine.NewLossless(cfg)
	a.onClose("lossless engine", a.engine.Dispose)
	legacy := engine.NewLegacy(cfg, nil)
	a.onClose("legacy engine", legacy.Dispose)
	a.engines = []engine.Full{a.engine, legacy}
	a.slot, err = engine.NewSlot(a.cfg.Engine, a.engines...)
	return err
}

func (a *App) startWorker(context.Context) error {
	if !a.roles.Worker {
		return nil
	}
	host, _ := os.Hostname() // a name only
	w := worker.New(worker.Config{
		Debts: a.store, Bus: a.bus, Compactor: a.engine.Compactor, Concurrency: a.cfg.WorkerConcurrency,
		SweepInterval: a.cfg.SweepInterval, SweepLease: a.cfg.SweepLease,
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
