package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Side is one side of a level: medians over its rounds.
type Side struct {
	PerSecond float64 `json:"perSecond"`
	P50Millis float64 `json:"p50Millis"`
	P99Millis float64 `json:"p99Millis"`
	// The CPU that one append cost, in microseconds; absent where the system
	// does not tell.
	PostgresCPU float64 `json:"postgresCpuMicros,omitempty"`
	NodeCPU     float64 `json:"nodeCpuMicros,omitempty"`
	ClientCPU   float64 `json:"clientCpuMicros,omitempty"`
	// PerTransaction is how many appends shared one, at the mean.
	PerTransaction float64 `json:"perTransaction"`
	Transactions   int64   `json:"transactions"`
	Calls          int64   `json:"calls"`

	rates   []float64
	others  []float64
	counted int64
}

// Level compares the sides at one number of connections.
type Level struct {
	Sessions    int  `json:"sessions"`
	Connections int  `json:"connections"`
	HTTP        Side `json:"http"`
	Pgbench     Side `json:"pgbench"`
	// Ratio is HTTP's rate by pgbench's: the median of the rounds' ratios.
	Ratio float64 `json:"ratio"`
	// CPURatio compares the processor time of everything that an append took:
	// pgbench's by HTTP's. It holds on a busy machine too.
	CPURatio float64 `json:"cpuRatio,omitempty"`
	// Others is the share of the processors that other programs used meanwhile.
	Others float64 `json:"others"`
}

// level measures both sides in turns, so that what else the machine does meets
// both.
func (b *bench) level(ctx context.Context, sessions, conns int) (Level, error) {
	l := Level{Sessions: sessions, Connections: conns}
	for spare := b.retries; len(l.HTTP.rates) < b.rounds; {
		r := l
		if err := b.round(ctx, &r, b.duration); err != nil {
			return l, err
		}
		if max(newest(r.HTTP.others), newest(r.Pgbench.others)) > b.quiet && spare > 0 {
			spare-- // the machine was busy with something else
			continue
		}
		l = r
	}
	var ratios []float64
	for i := range l.HTTP.rates {
		ratios = append(ratios, l.HTTP.rates[i]/l.Pgbench.rates[i])
	}
	l.Ratio = median(ratios)
	l.HTTP.finish(b.rounds)
	l.Pgbench.finish(b.rounds)
	if l.HTTP.PostgresCPU > 0 {
		l.CPURatio = l.Pgbench.cpu() / l.HTTP.cpu()
	}
	l.Others = median(append(l.HTTP.others, l.Pgbench.others...))
	return l, nil
}

func (b *bench) round(ctx context.Context, l *Level, length time.Duration) error {
	if err := b.measure(ctx, &l.HTTP, sideHTTP, func() (measured, error) {
		return b.driveHTTP(ctx, l.Sessions, l.Connections, length)
	}); err != nil {
		return err
	}
	return b.measure(ctx, &l.Pgbench, sidePgbench, func() (measured, error) {
		return b.drivePgbench(ctx, l.Sessions, l.Connections, length)
	})
}

func (b *bench) measure(ctx context.Context, s *Side, side string, drive func() (measured, error)) error {
	var before, transactions, after int64
	if err := b.db.QueryRow(ctx, "SELECT coalesce(max(position), 0) FROM events").Scan(&before); err != nil {
		return err
	}
	m, err := drive()
	b.acked[side] += m.calls
	if err != nil {
		return err
	}
	// Nobody else writes here, so the writing transactions are the side's.
	err = b.db.QueryRow(ctx, "SELECT count(DISTINCT xid), count(*) FROM events WHERE position > $1", before).Scan(&transactions, &after)
	if err != nil {
		return err
	}
	if after != m.calls {
		return fmt.Errorf("%s: %d calls acknowledged, %d events stored", side, m.calls, after)
	}
	s.add(m, transactions)
	return nil
}

func (s *Side) add(m measured, transactions int64) {
	s.rates = append(s.rates, float64(m.counted)/m.took.Seconds())
	s.Calls += m.calls
	s.counted += m.counted
	s.Transactions += transactions
	s.P50Millis += millis(quantile(m.lat, .5))
	s.P99Millis += millis(quantile(m.lat, .99))
	s.PostgresCPU += micros(m.used.postgres)
	s.others = append(s.others, m.used.others().Seconds()/m.took.Seconds()/float64(runtime.NumCPU()))
	s.NodeCPU += micros(m.used.node)
	s.ClientCPU += micros(m.used.client)
}

// finish turns sums into means; the rate is the median round's.
func (s *Side) finish(rounds int) {
	s.PerSecond = median(s.rates)
	s.PerTransaction = float64(s.Calls) / float64(max(s.Transactions, 1))
	s.P50Millis /= float64(rounds)
	s.P99Millis /= float64(rounds)
	for _, cpu := range []*float64{&s.PostgresCPU, &s.NodeCPU, &s.ClientCPU} {
		*cpu /= float64(max(s.counted, 1))
	}
}

func newest(f []float64) float64 { return f[len(f)-1] }

func (s *Side) cpu() float64 { return s.PostgresCPU + s.NodeCPU + s.ClientCPU }

func median(f []float64) float64 {
	if len(f) == 0 {
		return 0
	}
	f = slices.Sorted(slices.Values(f))
	return (f[(len(f)-1)/2] + f[len(f)/2]) / 2
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
