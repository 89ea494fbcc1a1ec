package summarizers

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/chain"
	"github.com/engined/engined/internal/store"
)

// gate is the store's, as a chain sees it.
type gate struct{ set *Set }

func (g gate) Enter(ctx context.Context, tenant, summarizer string) error {
	st, err := g.set.cfg.Store.EnterGate(ctx, tenant, summarizer, g.set.limits[summarizer], g.set.cfg.Gate)
	if err != nil {
		return err
	}
	if !st.Open {
		return &chain.ClosedError{Summarizer: summarizer, Until: st.Until, Why: st.Why}
	}
	return nil
}

func (g gate) Leave(ctx context.Context, tenant, summarizer string, used summarize.Usage, f *summarize.Failure) error {
	spent := store.Spend{
		Calls: int64(max(used.Calls, 1)), InputTokens: used.InputTokens, OutputTokens: used.OutputTokens,
		CostMicros: used.CostMicros, Took: used.Took,
	}
	var failure *store.GateFailure
	if f != nil {
		spent.Failed = 1
		if f.Fault.OfProvider() || f.Fault == summarize.FaultAbandoned {
			failure = &store.GateFailure{
				Fault: string(f.Fault), Err: reason(f), Wait: f.RetryAfter, Abandoned: f.Fault == summarize.FaultAbandoned,
				// A wrong key will be as wrong the next time, and who asks to be left
				// alone for a time is.
				AtOnce: f.Fault == summarize.FaultAccess || f.RetryAfter > 0,
			}
		}
	}
	return g.set.cfg.Store.LeaveGate(ctx, tenant, summarizer, spent, failure, g.set.cfg.Gate)
}

// reason is what is kept of a failure beyond its session: its class, the status,
// the provider's code and the system's errors of connections. Anything else may
// quote the conversation.
func reason(f *summarize.Failure) string {
	text := string(f.Fault)
	if f.Status > 0 {
		text += fmt.Sprintf(" (%d)", f.Status)
	}
	if f.Code != "" {
		text += ": " + f.Code
	}
	if e, ok := errors.AsType[syscall.Errno](f.Err); ok {
		text += ": " + e.Error()
	}
	return text
}
