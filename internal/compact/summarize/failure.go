package summarize

import (
	"fmt"
	"time"
)

// Usage is what a summary took to write, failed tries of the same summarizer
// included.
type Usage struct {
	Calls        int   `json:"calls,omitempty"`
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// CostMicros is in millionths of a US dollar, by the prices that were set; 0
	// where none were.
	CostMicros int64         `json:"costMicros,omitempty"`
	Took       time.Duration `json:"took,omitempty"`
}

// Plus adds two usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Calls: u.Calls + v.Calls, InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens,
		CostMicros: u.CostMicros + v.CostMicros, Took: u.Took + v.Took,
	}
}

// Fault says whose fault a failure is. It follows from a status, a finish
// reason or the way a connection ended, never from words in a text.
type Fault string

// The faults.
const (
	// FaultContent: the provider answered, but not with a usable summary.
	FaultContent Fault = "content"
	// FaultRefused: the model declined, or a filter did.
	FaultRefused Fault = "refused"
	// FaultRequest: the provider does not take this request (400, 413, 422).
	FaultRequest Fault = "request"
	// FaultAccess: the key, the account or the model's name is wrong (401, 403, 404).
	FaultAccess Fault = "access"
	// FaultBusy: too many requests (429, 503 and 529 with a time to come back).
	FaultBusy Fault = "busy"
	// FaultDown: 5xx, no connection, or one that was cut.
	FaultDown Fault = "down"
	// FaultSlow: no answer in time, or an answer that stood still.
	FaultSlow Fault = "slow"
	// FaultAbandoned: who asked left before the answer; it says nothing of anybody.
	FaultAbandoned Fault = "abandoned"
)

// OfProvider tells the faults that say something of the provider beyond this
// one request: they count for its circuit breaker.
func (f Fault) OfProvider() bool {
	return f == FaultAccess || f == FaultBusy || f == FaultDown || f == FaultSlow
}

// Failure is why a model gave no summary, and what that cost.
type Failure struct {
	Fault Fault
	// Status is the HTTP status, 0 where there was none; Code the provider's own
	// word for it, such as invalid_api_key.
	Status int
	Code   string
	// RetryAfter is when the provider wants to be asked again, 0 for unsaid.
	RetryAfter time.Duration
	Usage      Usage
	Err        error
}

func (f *Failure) Error() string {
	if f.Status > 0 {
		return fmt.Sprintf("%s (%d): %v", f.Fault, f.Status, f.Err)
	}
	return fmt.Sprintf("%s: %v", f.Fault, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// Final tells that asking again at once is of no use: a model was asked as often
// as it is asked, and a provider that fails is given time.
func (f *Failure) Final() bool { return true }
