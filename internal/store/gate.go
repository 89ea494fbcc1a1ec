package store

import (
	"context"
	"fmt"
	"time"

	"github.com/engined/engined/internal/store/db"
)

// GatePolicy says when a summarizer is not asked any more. Zero fields mean
// their defaults.
type GatePolicy struct {
	// Failures of the provider in a row open the breaker, default 5.
	Failures int
	// Pause is how long it stays open at first, default 30 s; it doubles each time
	// that the probe fails, up to Longest, default 15 min.
	Pause, Longest time.Duration
	// Probe is how long one worker may take to find out, default 3 min.
	Probe time.Duration
}

func (p GatePolicy) withDefaults() GatePolicy {
	if p.Failures == 0 {
		p.Failures = 5
	}
	if p.Pause == 0 {
		p.Pause = 30 * time.Second
	}
	if p.Longest == 0 {
		p.Longest = 15 * time.Minute
	}
	if p.Probe == 0 {
		p.Probe = 3 * time.Minute
	}
	return p
}

// breaker is what a failure changes.
type breaker struct {
	failures, opened int
	until            time.Time // zero while closed
}

// failed counts a failure at a time. At once opens it whatever was before; wait
// is what the provider asked for.
func (p GatePolicy) failed(b breaker, at time.Time, atOnce bool, wait time.Duration) breaker {
	b.failures++
	if !atOnce && b.until.IsZero() && b.failures < p.Failures {
		return b
	}
	pause := min(p.Pause<<min(b.opened, 16), p.Longest)
	b.opened++
	if until := at.Add(max(pause, wait)); until.After(b.until) {
		b.until = until
	}
	return b
}

// GateState says whether a summarizer may be asked.
type GateState struct {
	Open bool
	// Until is when it may be asked again; it is set where it may not now.
	Until time.Time
	Why   string
}

// EnterGate asks for leave to ask a summarizer. Of several workers that find it
// half open, one gets it. Calls in flight are not counted yet, so they may exceed
// the limits.
func (s *Store) EnterGate(ctx context.Context, tenant, summarizer string, limits SpendLimits, p GatePolicy) (GateState, error) {
	r, err := s.of(tenant).ReadGate(ctx, db.ReadGateParams{TenantID: tenant, Summarizer: summarizer})
	if err != nil {
		return GateState{}, readErr("gate", err)
	}
	if over := limits.over(r); over != "" {
		return GateState{Until: nextDay(r.At), Why: over}, nil
	}
	if r.OpenUntil == nil {
		return GateState{Open: true}, nil
	}
	if r.Shut {
		return GateState{Until: *r.OpenUntil, Why: "it failed: " + r.LastFault}, nil
	}
	p = p.withDefaults()
	n, err := s.of(tenant).TakeProbe(ctx, db.TakeProbeParams{TenantID: tenant, Summarizer: summarizer, ProbeSeconds: p.Probe.Seconds()})
	if err != nil {
		return GateState{}, fmt.Errorf("gate: %w", errUnavailable(err))
	}
	if n == 0 {
		return GateState{Until: r.At.Add(p.Pause), Why: "another worker finds out whether it answers again"}, nil
	}
	return GateState{Open: true}, nil
}

// GateFailure is a failure of the provider.
type GateFailure struct {
	Fault, Err string
	// AtOnce opens the breaker with the first one; Wait is what the provider asked for.
	AtOnce bool
	Wait   time.Duration
	// Abandoned: who asked left before the answer. It only ends a probe.
	Abandoned bool
}

// Spend is what calls took.
type Spend struct {
	Calls, Failed             int64
	InputTokens, OutputTokens int64
	CostMicros                int64
	Took                      time.Duration
}

// LeaveGate accounts for a call. f is nil where the provider did its part, be
// the text good or not.
func (s *Store) LeaveGate(ctx context.Context, tenant, summarizer string, spent Spend, f *GateFailure, p GatePolicy) error {
	err := s.within(ctx, tenant, func(q *db.Queries) error {
		err := q.AddSpend(ctx, db.AddSpendParams{
			TenantID: tenant, Summarizer: summarizer, Calls: spent.Calls, Failed: spent.Failed,
			InputTokens: spent.InputTokens, OutputTokens: spent.OutputTokens, CostMicros: spent.CostMicros,
			TookMillis: spent.Took.Milliseconds(),
		})
		if err != nil {
			return err
		}
		if f == nil {
			return q.CloseGate(ctx, db.CloseGateParams{TenantID: tenant, Summarizer: summarizer})
		}
		if f.Abandoned {
			return q.EndProbe(ctx, db.EndProbeParams{TenantID: tenant, Summarizer: summarizer})
		}
		return failGate(ctx, q, tenant, summarizer, f, p.withDefaults())
	})
	if err != nil {
		return fmt.Errorf("gate: %w", errUnavailable(err))
	}
	return nil
}

func failGate(ctx context.Context, q *db.Queries, tenant, summarizer string, f *GateFailure, p GatePolicy) error {
	if err := q.OpenRow(ctx, db.OpenRowParams{TenantID: tenant, Summarizer: summarizer}); err != nil {
		return err
	}
	r, err := q.LockGate(ctx, db.LockGateParams{TenantID: tenant, Summarizer: summarizer})
	if err != nil {
		return err
	}
	was := breaker{failures: int(r.Failures), opened: int(r.Opened)}
	if r.OpenUntil != nil {
		was.until = *r.OpenUntil
	}
	now := p.failed(was, r.At, f.AtOnce, f.Wait)
	params := db.FailGateParams{
		TenantID: tenant, Summarizer: summarizer, Failures: int32(now.failures), Opened: int32(min(now.opened, 1000)),
		LastFault: &f.Fault, LastError: &f.Err,
	}
	if !now.until.IsZero() {
		params.OpenUntil = &now.until
	}
	return q.FailGate(ctx, params)
}

// SummarizerState is what workers know of a summarizer, for one tenant.
type SummarizerState struct {
	Name string
	// State is closed (it is asked), open (it is not) or half-open (one worker may
	// find out).
	State      string
	Failures   int
	OpenUntil  time.Time
	Fault, Err string
	FailedAt   time.Time
	Today      Spend
}

// SummarizerStates lists the summarizers that a tenant ever asked.
func (s *Store) SummarizerStates(ctx context.Context, tenant string) ([]SummarizerState, error) {
	rows, err := s.of(tenant).ListGates(ctx, db.ListGatesParams{TenantID: tenant})
	if err != nil {
		return nil, readErr("gates", err)
	}
	out := make([]SummarizerState, len(rows))
	for i, r := range rows {
		out[i] = SummarizerState{
			Name: r.Summarizer, State: "closed", Failures: int(r.Failures), Fault: r.LastFault, Err: r.LastError,
			Today: Spend{
				Calls: r.Calls, Failed: r.Failed, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens,
				CostMicros: r.CostMicros, Took: time.Duration(r.TookMillis) * time.Millisecond,
			},
		}
		if r.OpenUntil != nil {
			out[i].State, out[i].OpenUntil = "half-open", *r.OpenUntil
			if r.Shut {
				out[i].State = "open"
			}
		}
		if r.FailedAt != nil {
			out[i].FailedAt = *r.FailedAt
		}
	}
	return out, nil
}

// SummarizerTotals are today's numbers of a summarizer over all tenants.
type SummarizerTotals struct {
	Name  string
	Today Spend
	// Open is for how many tenants it is not closed.
	Open int64
}

// SummarizerTotals are for metrics.
func (s *Store) SummarizerTotals(ctx context.Context) ([]SummarizerTotals, error) {
	rows, err := s.everyone.GatesInUse(ctx)
	if err != nil {
		return nil, readErr("gates", err)
	}
	out := make([]SummarizerTotals, len(rows))
	for i, r := range rows {
		out[i] = SummarizerTotals{Name: r.Summarizer, Open: r.Open, Today: Spend{
			Calls: r.Calls, Failed: r.Failed, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, CostMicros: r.CostMicros,
		}}
	}
	return out, nil
}
