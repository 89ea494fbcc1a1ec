package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/engined/engined/internal/summarizers"
)

// models reads once a scrape what workers share about summarizers. The numbers
// are the day's (UTC), of all nodes and tenants, so they are gauges.
type models struct {
	app                                            *App
	calls, failed, tokens, spent, open, redo, over *prometheus.Desc
}

func newModels(a *App) *models {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("engined_summarizer_"+name, help, labels, nil)
	}
	return &models{
		app:    a,
		calls:  desc("calls_today", "Calls of a summarizer since midnight UTC, of all nodes.", "summarizer"),
		failed: desc("failed_today", "Calls that gave no summary since midnight UTC, of all nodes.", "summarizer"),
		tokens: desc("tokens_today", "Tokens since midnight UTC, of all nodes.", "summarizer", "direction"),
		spent:  desc("spent_today_dollars", "Cost since midnight UTC by the prices that are set, of all nodes.", "summarizer"),
		open:   desc("open_tenants", "Tenants for which the summarizer is left alone.", "summarizer"),
		over:   desc("spent_tenants", "Tenants that reached their spend limit of the day, over all summarizers."),
		redo:   desc("redo_owed", "Sessions with summaries that a rule wrote in a model's place."),
	}
}

// Describe implements prometheus.Collector.
func (m *models) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.calls, m.failed, m.tokens, m.spent, m.open, m.redo, m.over} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. With Postgres away it shows nothing.
func (m *models) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if n, err := m.app.store.OwedRedos(ctx); err == nil {
		gauge(m.redo, float64(n))
	}
	if spenders, err := m.app.store.SpendersToday(ctx, summarizers.Micros(m.app.cfg.TenantSpend)); err == nil {
		n := 0
		for _, t := range spenders {
			if t.Over() {
				n++
			}
		}
		gauge(m.over, float64(n))
	}
	totals, err := m.app.store.SummarizerTotals(ctx)
	if err != nil {
		return
	}
	for _, t := range totals {
		gauge(m.calls, float64(t.Today.Calls), t.Name)
		gauge(m.failed, float64(t.Today.Failed), t.Name)
		gauge(m.tokens, float64(t.Today.InputTokens), t.Name, "in")
		gauge(m.tokens, float64(t.Today.OutputTokens), t.Name, "out")
		gauge(m.spent, float64(t.Today.CostMicros)/1e6, t.Name)
		gauge(m.open, float64(t.Open), t.Name)
	}
}
