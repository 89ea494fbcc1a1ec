package engine

import (
	"context"
	"errors"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// Compact makes the next window smaller. The default engine does not compact in
// the place of one that has just failed: the failure is the answer. For an engine
// that does not own compaction it does, where the engine delegates: by calling
// contextengine.DelegateCompaction or, from behind a network, by answering that
// the call is not supported.
func (g *Guard) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	c := guardedCompact(p, nativeRuntime{g, p.Session})
	res, err := call(ctx, g, c)
	if errors.Is(err, errDelegated) {
		return byDefault(ctx, g, c)
	}
	return res, err
}

func guardedCompact(p contextengine.CompactParams, runtime contextengine.CompactionRuntime) guarded[contextengine.CompactResult] {
	return guarded[contextengine.CompactResult]{
		op: OpCompact, check: checkCompacted, rethrow: true,
		bind: func(in *instance) bound[contextengine.CompactResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			p.Runtime = nil
			delegates := !in.info.OwnsCompaction && in.ID != LegacyID
			if delegates {
				p.Runtime = runtime
			}
			return func(ctx context.Context) (contextengine.CompactResult, error) {
				res, err := in.engine.Compact(ctx, p)
				if delegates && lacks(err) {
					return contextengine.CompactResult{}, errDelegated
				}
				return res, err
			}
		},
	}
}

// errDelegated: the engine leaves the compaction to the host's runtime.
var errDelegated = errors.New("compaction is delegated")

// nativeRuntime is the default engine's compaction, isolated as every call is. It
// compacts the session that the host named and no other.
type nativeRuntime struct {
	guard   *Guard
	session contextengine.Session
}

func (r nativeRuntime) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	p.Session = r.session
	res, err := byDefault(ctx, r.guard, guardedCompact(p, nil))
	if err != nil {
		return res, &nativeError{err}
	}
	return res, nil
}

// nativeError is a failure of the native runtime. It is not held against the
// engine that delegated to it.
type nativeError struct{ err error }

func (e *nativeError) Error() string { return "native compaction: " + e.err.Error() }
func (e *nativeError) Unwrap() error { return e.err }

// DebtPayer is an engine that compacts what a session of its log owes.
type DebtPayer interface {
	Owed(ctx context.Context, s store.Session, d store.Debt) (contextengine.CompactResult, error)
	// Redo has models write anew what a rule wrote in their place; false is nothing
	// to do.
	Redo(ctx context.Context, s store.Session) (bool, error)
}

// Owed pays a session's debt, isolated as Compact is. The debts of a log whose
// sessions an engine without any now serves are the default engine's.
func (g *Guard) Owed(ctx context.Context, s store.Session, d store.Debt) (contextengine.CompactResult, error) {
	c := guarded[contextengine.CompactResult]{
		op: OpCompact, check: checkCompacted, rethrow: true,
		bind: func(in *instance) bound[contextengine.CompactResult] {
			return func(ctx context.Context) (contextengine.CompactResult, error) {
				e, ok := in.engine.(DebtPayer)
				if !ok {
					return contextengine.CompactResult{}, errDelegated
				}
				return e.Owed(ctx, s, d)
			}
		},
	}
	res, err := call(ctx, g, c)
	if errors.Is(err, errDelegated) {
		return byDefault(ctx, g, c)
	}
	return res, err
}

// Redo writes degraded summaries anew, isolated as Compact is.
func (g *Guard) Redo(ctx context.Context, s store.Session) (bool, error) {
	c := guarded[bool]{
		op: OpCompact, rethrow: true,
		bind: func(in *instance) bound[bool] {
			return func(ctx context.Context) (bool, error) {
				e, ok := in.engine.(DebtPayer)
				if !ok {
					return false, errDelegated
				}
				return e.Redo(ctx, s)
			}
		},
	}
	done, err := call(ctx, g, c)
	if errors.Is(err, errDelegated) {
		return byDefault(ctx, g, c)
	}
	return done, err
}
