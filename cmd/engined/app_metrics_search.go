package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// searchLag tells how far the search index is behind the log, of all tenants,
// and what searches on this node wait for.
type searchLag struct {
	app                                        *App
	events, seconds, running, waiting, refused *prometheus.Desc
}

func newSearchLag(a *App) *searchLag {
	gauge := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &searchLag{
		app:     a,
		events:  gauge("engined_search_lag_events", "Events of all tenants that are not in the search index yet; of each tenant up to 10000 are counted."),
		seconds: gauge("engined_search_lag_seconds", "How long the oldest of them has waited."),
		running: gauge("engined_searches_running", "Searches that run on this node."),
		waiting: gauge("engined_searches_waiting", "Searches that wait for their turn on this node."),
		refused: gauge("engined_searches_refused_total", "Searches that this node refused because too many ran and waited."),
	}
}

// Describe implements prometheus.Collector.
func (s *searchLag) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.events, s.seconds, s.running, s.waiting, s.refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. With Postgres away it does not tell the lag.
func (s *searchLag) Collect(ch chan<- prometheus.Metric) {
	running, waiting, refused := s.app.search.Load()
	ch <- prometheus.MustNewConstMetric(s.running, prometheus.GaugeValue, float64(running))
	ch <- prometheus.MustNewConstMetric(s.waiting, prometheus.GaugeValue, float64(waiting))
	ch <- prometheus.MustNewConstMetric(s.refused, prometheus.CounterValue, float64(refused))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	events, oldest, err := s.app.store.SearchLag(ctx)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(s.events, prometheus.GaugeValue, float64(events))
	ch <- prometheus.MustNewConstMetric(s.seconds, prometheus.GaugeValue, oldest.Seconds())
}
