package main

import (
	"fmt"
	"os"

	"github.com/engined/engined/internal/api"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/compact/summarize/redact"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/summarizers"
)

// makeSummarizers reads the keys from the environment: they are in no setting.
func (a *App) makeSummarizers() (*summarizers.Set, error) {
	redactor, err := a.redactor()
	if err != nil {
		return nil, err
	}
	cfg := summarizers.Config{
		Tenants: a.cfg.TenantSummarizers(), Store: a.store, Redact: redactor,
		Gate: store.GatePolicy{Failures: a.cfg.SummarizerFailures}, TenantLimit: a.cfg.TenantSpend,
		Timeout: a.cfg.SummarizerTimeout, Idle: a.cfg.SummarizerIdle, Lease: a.cfg.SummarizerLease,
	}
	for _, s := range a.cfg.Summarizers() {
		key := os.Getenv(s.KeyEnv())
		if key == "" && s.URL == "" && (s.Kind == string(summarizers.OpenAI) || s.Kind == string(summarizers.Anthropic)) {
			return nil, fmt.Errorf("summarizer %s: no key; set %s", s.Name, s.KeyEnv())
		}
		cfg.Specs = append(cfg.Specs, summarizers.Spec{
			Name: s.Name, Kind: summarizers.Kind(s.Kind), Model: s.Model, URL: s.URL, Key: key,
			Price: llm.Price{Input: s.InputPrice, Output: s.OutputPrice}, DailyLimit: s.DailyLimit,
		})
	}
	return summarizers.New(cfg)
}

// summarizerRows are a tenant's summarizers as settings name them. URLs and keys
// are no part of them.
func (a *App) summarizerRows(tenant string) []api.SummarizerRow {
	var out []api.SummarizerRow
	for _, s := range a.summarizers.Specs(tenant) {
		out = append(out, api.SummarizerRow{
			Name: s.Name, Kind: string(s.Kind), Model: s.Model, DailyLimitMicros: summarizers.Micros(s.DailyLimit),
		})
	}
	return out
}

func (a *App) redactor() (redact.Redactor, error) {
	if !a.cfg.Redact {
		return redact.None(), nil
	}
	if a.cfg.RedactFile == "" {
		return redact.New(), nil
	}
	f, err := os.Open(a.cfg.RedactFile)
	if err != nil {
		return redact.None(), fmt.Errorf("redact-file: %w", err)
	}
	defer f.Close()
	rules, err := redact.Parse(f)
	if err != nil {
		return redact.None(), fmt.Errorf("redact-file: %s: %w", a.cfg.RedactFile, err)
	}
	return redact.New(rules...), nil
}
