package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/hooks"
)

// observe registers what is measured besides HTTP.
func (a *App) observe() {
	counter := func(name, help string, read func(bus.Stats) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "engined_bus_" + name + "_total", Help: help},
			func() float64 { return float64(read(a.bus.Stats())) })
	}
	a.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "engined_nats_up", Help: "1 while NATS takes and deals out work."}, func() float64 {
			if ok, _ := a.bus.Healthy(); ok {
				return 1
			}
			return 0
		}),
		counter("published", "Messages that NATS stored.", func(s bus.Stats) uint64 { return s.Published }),
		counter("publish_failed", "Messages that NATS did not take.", func(s bus.Stats) uint64 { return s.PublishFailed }),
		counter("dropped", "Messages that were never sent; the sweep and the relay send them.", func(s bus.Stats) uint64 { return s.Dropped }),
		counter("delivered", "Jobs that were handed to a worker here.", func(s bus.Stats) uint64 { return s.Delivered }),
		counter("dead", "Jobs given up here; recorded in Postgres.", func(s bus.Stats) uint64 { return s.Dead }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "engined_postgres_connections_acquired", Help: "Connections in use."},
			func() float64 { return float64(a.store.PoolStats().Acquired) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "engined_postgres_connections_max", Help: "Most connections."},
			func() float64 { return float64(a.store.PoolStats().Max) }),
		&setAside{a.engines, prometheus.NewDesc("engined_engine_quarantined", "1 for each engine that is set aside on this node.", []string{"engine", "operation"}, nil)},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "engined_engine_calls_abandoned", Help: "Calls of engines that were given up and have not ended."},
			func() float64 { return float64(a.engines.Abandoned()) }),
		&webhooks{a.hooks, prometheus.NewDesc("engined_hooks_total", "Webhooks around compactions, by hook and outcome.", []string{"hook", "outcome"}, nil)},
		&maintenance{a.upkeep, prometheus.NewDesc("engined_maintenance_total", "Maintenance of sessions, by outcome.", []string{"outcome"}, nil)},
		&debts{
			app:    a,
			owed:   prometheus.NewDesc("engined_compactions_owed", "Sessions that owe a compaction, of all nodes.", nil, nil),
			oldest: prometheus.NewDesc("engined_compactions_owed_oldest_seconds", "Age of the oldest debt.", nil, nil),
		},
		newModels(a),
		newSearchLag(a),
	)
}

// setAside shows the quarantines of the node.
type setAside struct {
	engines *engine.Registry
	desc    *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *setAside) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *setAside) Collect(ch chan<- prometheus.Metric) {
	for _, q := range s.engines.Quarantines() {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, 1, q.EngineID, string(q.Operation))
	}
}

// debts reads what is owed once a scrape.
type debts struct {
	app          *App
	owed, oldest *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (d *debts) Describe(ch chan<- *prometheus.Desc) { ch <- d.owed; ch <- d.oldest }

// Collect implements prometheus.Collector. With Postgres away it shows nothing.
func (d *debts) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	n, oldest, err := d.app.store.OwedCompactions(ctx)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(d.owed, prometheus.GaugeValue, float64(n))
	ch <- prometheus.MustNewConstMetric(d.oldest, prometheus.GaugeValue, oldest.Seconds())
}

// maintenance shows what was maintained.
type maintenance struct {
	upkeep *engine.Upkeep
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (m *maintenance) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements prometheus.Collector.
func (m *maintenance) Collect(ch chan<- prometheus.Metric) {
	s := m.upkeep.Stats()
	for outcome, n := range map[string]uint64{
		"changed": s.Changed, "unchanged": s.Unchanged, "failed": s.Failed, "coalesced": s.Coalesced, "dropped": s.Dropped,
	} {
		ch <- prometheus.MustNewConstMetric(m.desc, prometheus.CounterValue, float64(n), outcome)
	}
}

// webhooks shows what hooks came to.
type webhooks struct {
	hooks *hooks.Hooks
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (w *webhooks) Describe(ch chan<- *prometheus.Desc) { ch <- w.desc }

// Collect implements prometheus.Collector.
func (w *webhooks) Collect(ch chan<- prometheus.Metric) {
	s := w.hooks.Stats()
	for at, n := range map[[2]string]uint64{
		{"before", "ok"}: s.BeforeOK, {"before", "failed"}: s.BeforeFailed, {"before", "timeout"}: s.BeforeTimeout,
		{"after", "ok"}: s.AfterOK, {"after", "failed"}: s.AfterFailed, {"after", "dropped"}: s.AfterDropped,
	} {
		ch <- prometheus.MustNewConstMetric(w.desc, prometheus.CounterValue, float64(n), at[0], at[1])
	}
}
