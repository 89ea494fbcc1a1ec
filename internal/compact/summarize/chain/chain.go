// Package chain asks several summarizers in turn, past those that a gate shuts
// out: circuit breakers, rate limits and spend limits, which all workers share.
// The rule that needs no model comes last, and only where it is allowed.
package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
)

// Gate decides which summarizer a tenant may ask now, and hears how it went. It
// is safe for concurrent use.
type Gate interface {
	// Enter answers with a *ClosedError where the summarizer is not to be asked.
	Enter(ctx context.Context, tenant, summarizer string) error
	// Leave is called once after an Enter that let it in. f is nil after success.
	Leave(ctx context.Context, tenant, summarizer string, used summarize.Usage, f *summarize.Failure) error
}

// ClosedError is a gate that is shut.
type ClosedError struct {
	Summarizer string
	// Until is when it may open; zero for unknown.
	Until time.Time
	Why   string
}

func (e *ClosedError) Error() string {
	if e.Until.IsZero() {
		return fmt.Sprintf("%s is not asked: %s", e.Summarizer, e.Why)
	}
	return fmt.Sprintf("%s is not asked before %s: %s", e.Summarizer, e.Until.UTC().Format(time.RFC3339), e.Why)
}

// ExhaustedError is what a chain answers when nobody wrote a summary. It was
// tried for good: asking again at once would meet the same.
type ExhaustedError struct{ Tries []error }

func (e *ExhaustedError) Error() string {
	lines := make([]string, len(e.Tries))
	for i, t := range e.Tries {
		lines[i] = t.Error()
	}
	return "no summarizer gave a summary: " + strings.Join(lines, "; ")
}

// Unwrap gives every try.
func (e *ExhaustedError) Unwrap() []error { return e.Tries }

// Final tells that another attempt at once is of no use.
func (e *ExhaustedError) Final() bool { return true }

// RetryAt is the earliest time at which a gate said that it may open; zero where
// none did.
func (e *ExhaustedError) RetryAt() time.Time {
	var at time.Time
	for _, t := range e.Tries {
		if c, ok := errors.AsType[*ClosedError](t); ok && !c.Until.IsZero() && (at.IsZero() || c.Until.Before(at)) {
			at = c.Until
		}
	}
	return at
}

// Chain is a summarize.Summarizer for one tenant.
type Chain struct {
	// Tenant is whom the gate counts for.
	Tenant string
	// Members are asked in this order.
	Members []summarize.Summarizer
	// Gate may be nil: everybody may be asked.
	Gate Gate
	// LastResort writes by rule what no member would.
	LastResort bool
}

// Name implements summarize.Summarizer.
func (c *Chain) Name() string {
	names := make([]string, len(c.Members))
	for i, m := range c.Members {
		names[i] = m.Name()
	}
	return strings.Join(names, "+")
}

// Version implements summarize.Summarizer. Whether there is a last resort is no
// part of it: what a model wrote is good either way.
func (c *Chain) Version() string {
	h := sha256.New()
	for _, m := range c.Members {
		fmt.Fprintf(h, "%s\x00%s\x00", m.Name(), m.Version())
	}
	return "chain " + hex.EncodeToString(h.Sum(nil)[:8])
}

// Summarize implements summarize.Summarizer. Each member gets an equal part of
// what is left of the time, so that one that hangs leaves some to the next.
func (c *Chain) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	gone := &ExhaustedError{}
	var spent summarize.Usage
	for i, m := range c.Members {
		res, err := c.try(ctx, m, req, len(c.Members)-i)
		if err == nil {
			res.Usage = res.Usage.Plus(spent)
			return res, nil
		}
		if ctx.Err() != nil {
			return summarize.Result{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if f, ok := errors.AsType[*summarize.Failure](err); ok {
			spent = spent.Plus(f.Usage)
		}
		gone.Tries = append(gone.Tries, err)
	}
	if !c.LastResort {
		return summarize.Result{}, gone
	}
	res, err := summarize.Extractive{}.Summarize(ctx, req)
	if err != nil {
		gone.Tries = append(gone.Tries, fmt.Errorf("extractive: %w", err))
		return summarize.Result{}, gone
	}
	res.Summarizer, res.Degraded = summarize.Extractive{}.Name(), true
	res.Usage = spent
	return res, nil
}

func (c *Chain) try(ctx context.Context, m summarize.Summarizer, req summarize.Request, left int) (summarize.Result, error) {
	_, byRule := m.(summarize.Extractive)
	if c.Gate != nil && !byRule {
		if err := c.Gate.Enter(ctx, c.Tenant, m.Name()); err != nil {
			return summarize.Result{}, err
		}
	}
	asked, cancel := share(ctx, left)
	defer cancel()
	res, err := m.Summarize(asked, req)
	if c.Gate != nil && !byRule {
		c.leave(ctx, m, res, err)
	}
	if err != nil {
		return summarize.Result{}, fmt.Errorf("%s: %w", m.Name(), err)
	}
	res.Summarizer = m.Name()
	res.Degraded = byRule && c.hasModel()
	return res, nil
}

// leaveTimeout bounds the telling of how it went, which goes on when the caller
// has given up: it is paid for.
const leaveTimeout = 5 * time.Second

func (c *Chain) leave(ctx context.Context, m summarize.Summarizer, res summarize.Result, err error) {
	used := res.Usage
	var f *summarize.Failure
	if err != nil {
		if found, ok := errors.AsType[*summarize.Failure](err); ok {
			f, used = found, found.Usage
		} else {
			f = &summarize.Failure{Fault: summarize.FaultDown, Err: err}
		}
		// A caller that left says nothing of the provider.
		if ctx.Err() != nil && f.Fault.OfProvider() {
			f = &summarize.Failure{Fault: summarize.FaultAbandoned, Err: context.Cause(ctx)}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_ = c.Gate.Leave(ctx, c.Tenant, m.Name(), used, f) // the summary counts more than its accounting
}

func (c *Chain) hasModel() bool {
	for _, m := range c.Members {
		if _, byRule := m.(summarize.Extractive); !byRule {
			return true
		}
	}
	return false
}

// share is a context with a part of the time that is left.
func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	until, ok := ctx.Deadline()
	if !ok || parts <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(until)/time.Duration(parts))
}
