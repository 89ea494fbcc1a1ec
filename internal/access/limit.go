package access

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
)

// Quota is what a tenant may have and use. 0 is no limit.
type Quota struct {
	// Rate is calls a second on one node, Concurrency calls at one time there.
	Rate        float64
	Concurrency int64
	// Sessions and StorageBytes are of the whole tenant. They are looked at from
	// time to time, so a tenant may pass them by what it writes meanwhile.
	Sessions, StorageBytes int64
}

// Override says where a tenant's quota differs from the settings'; nil is the
// settings' value.
type Override struct {
	Tenant                              string
	Rate                                *float64
	Concurrency, Sessions, StorageBytes *int64
	// SpendMicros is what summaries may cost a day, in millionths of a US dollar;
	// KeepBytes what retention keeps. Neither limits a call.
	SpendMicros, KeepBytes *int64
}

// over is the quota with what the override says.
func (o *Override) over(q Quota) Quota {
	if o.Rate != nil {
		q.Rate = *o.Rate
	}
	for _, f := range []struct {
		to   *int64
		from *int64
	}{{&q.Concurrency, o.Concurrency}, {&q.Sessions, o.Sessions}, {&q.StorageBytes, o.StorageBytes}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return q
}

// Usage tells what a tenant has.
type Usage interface {
	// Override is the zero value for a tenant without one.
	Override(ctx context.Context, tenant string) (Override, error)
	// CountSessions counts no further than most.
	CountSessions(ctx context.Context, tenant string, most int64) (int64, error)
	// CountBytes tells the size of the tenant's events.
	CountBytes(ctx context.Context, tenant string) (int64, error)
}

// LimitError: a tenant is at one of its limits.
type LimitError struct {
	// What is calls a second, calls at one time, sessions, or bytes.
	What  string
	Limit float64
	// Wait is after what time another try makes sense; 0 where waiting is of no
	// use.
	Wait time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the tenant is at its limit of %g %s", e.Limit, e.What)
}

// lookEvery is how often a tenant's override and usage are looked at.
const lookEvery = 10 * time.Second

// Limiter holds tenants to their quotas. What a tenant has is looked at in the
// background: no call waits for it.
type Limiter struct {
	quota Quota
	usage Usage
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	tenants map[string]*tenant
	closed  bool
	looks   sync.WaitGroup
}

type tenant struct {
	quota   Quota
	tokens  float64
	filled  time.Time
	running int64
	looked  time.Time
	looking bool
	// full says which of the quotas of the whole tenant are used up.
	fullSessions, fullBytes bool
}

// NewLimiter makes a limiter with the settings' quota.
func NewLimiter(quota Quota, usage Usage, now func() time.Time, log *slog.Logger) *Limiter {
	return &Limiter{quota: quota, usage: usage, now: now, log: log, tenants: map[string]*tenant{}}
}

// Enter lets a call of a tenant in; the caller calls leave at its end. A
// *LimitError refuses it. A stream counts as one call, at its start.
func (l *Limiter) Enter(name string, stream bool) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	if t.quota.Concurrency > 0 && !stream && t.running >= t.quota.Concurrency {
		return nil, &LimitError{What: "calls at one time", Limit: float64(t.quota.Concurrency), Wait: time.Second}
	}
	if wait := t.spend(l.now()); wait > 0 {
		return nil, &LimitError{What: "calls a second", Limit: t.quota.Rate, Wait: wait}
	}
	if stream {
		return func() {}, nil
	}
	t.running++
	return func() {
		l.mu.Lock()
		t.running--
		l.mu.Unlock()
	}, nil
}

// Grow tells whether a tenant may write more, in a session that exists or one
// to be opened.
func (l *Limiter) Grow(name string, exists func() (bool, error)) error {
	l.mu.Lock()
	t := l.of(name)
	quota, sessions, bytes := t.quota, t.fullSessions, t.fullBytes
	l.mu.Unlock()
	if bytes {
		return &LimitError{What: "bytes", Limit: float64(quota.StorageBytes)}
	}
	if !sessions {
		return nil
	}
	if known, err := exists(); err != nil || known {
		return err
	}
	return &LimitError{What: "sessions", Limit: float64(quota.Sessions)}
}

// of finds a tenant, and has it looked at where the last look is old. l.mu is held.
func (l *Limiter) of(name string) *tenant {
	t := l.tenants[name]
	if t == nil {
		t = &tenant{quota: l.quota, filled: l.now(), tokens: burst(l.quota.Rate)}
		l.tenants[name] = t
	}
	if !t.looking && !l.closed && l.now().Sub(t.looked) >= lookEvery {
		t.looking = true
		l.looks.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
			defer cancel()
			if err := l.Look(ctx, name); err != nil {
				l.log.Warn("the usage of a tenant is unknown for now", "error", err)
			}
		})
	}
	return t
}

// Look reads a tenant's override and usage now.
func (l *Limiter) Look(ctx context.Context, name string) error {
	quota, sessions, bytes, err := l.look(ctx, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[name]
	if t == nil {
		t = &tenant{filled: l.now(), tokens: burst(quota.Rate)}
		l.tenants[name] = t
	}
	t.looking, t.looked = false, l.now()
	if err != nil {
		return err // what was known before stays
	}
	t.quota, t.fullSessions, t.fullBytes = quota, sessions, bytes
	return nil
}

func (l *Limiter) look(ctx context.Context, name string) (q Quota, sessions, bytes bool, err error) {
	o, err := l.usage.Override(ctx, name)
	if err != nil {
		return q, false, false, err
	}
	q = o.over(l.quota)
	if q.Sessions > 0 {
		n, err := l.usage.CountSessions(ctx, name, q.Sessions)
		if err != nil {
			return q, false, false, err
		}
		sessions = n >= q.Sessions
	}
	if q.StorageBytes > 0 {
		n, err := l.usage.CountBytes(ctx, name)
		if err != nil {
			return q, false, false, err
		}
		bytes = n >= q.StorageBytes
	}
	return q, sessions, bytes, nil
}

// Close waits for looks that run.
func (l *Limiter) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.looks.Wait()
}

// burst is how many calls may come at once: those of two seconds.
func burst(rate float64) float64 { return math.Max(1, 2*rate) }

// spend takes one call from the bucket, or tells when there will be one.
func (t *tenant) spend(now time.Time) (wait time.Duration) {
	if !(t.quota.Rate > 0) { // no number is no limit
		return 0
	}
	t.tokens = math.Min(burst(t.quota.Rate), t.tokens+now.Sub(t.filled).Seconds()*t.quota.Rate)
	t.filled = now
	if t.tokens < 1 {
		return time.Duration((1 - t.tokens) / t.quota.Rate * float64(time.Second))
	}
	t.tokens--
	return 0
}
