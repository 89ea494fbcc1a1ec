package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
)

// Guard is the slot's engine with every call of it isolated. Panics, errors
// that are nobody else's fault, results that cannot be and missed deadlines set
// the engine aside for the process; the default engine answers that call and
// those that follow.
//
// Three things never set an engine aside: a caller that gives up (the call
// returns at once), an error that is the caller's own fault, and Postgres being
// away. Built-in engines are set aside for panics and wrong results alone: what
// else they answer comes from what they stand on.
//
// Guard implements every call of the contract, also where the engine does not.
type Guard struct {
	reg   *Registry
	mount *mount
	undo  rollbacks
}

var (
	_ Full     = (*Guard)(nil)
	_ Stepper  = (*Guard)(nil)
	_ Brancher = (*Guard)(nil)
)

// Resolution says who serves a slot.
type Resolution struct {
	// ID is what the slot names, Serving who serves.
	ID, Serving string
	Info        contextengine.Info
	Owner       string
	// Quarantine tells why Serving is not ID.
	Quarantine *Quarantine
}

// Resolve makes the engine if that was not done and says who serves. An engine
// that is unknown, cannot be made or lacks what every engine has is set aside,
// and the default engine is the answer. An error means that the default engine
// cannot be made either, or that the caller gave up.
func (g *Guard) Resolve(ctx context.Context) (Resolution, error) {
	if err := aborted(ctx); err != nil {
		return Resolution{}, err
	}
	r := Resolution{ID: g.mount.id, Serving: g.mount.id}
	in, err := g.mount.acquire(ctx)
	if err == nil && in == nil {
		r.Serving = LegacyID
		in, err = g.reg.fallback.acquire(ctx)
		for _, q := range g.reg.Quarantines() {
			if q.EngineID == r.ID {
				r.Quarantine = &q
			}
		}
	}
	if err != nil {
		return Resolution{}, err
	}
	defer in.leave()
	r.Info, r.Owner = in.info, in.Owner
	return r, nil
}

// Info is that of the engine that serves.
func (g *Guard) Info() contextengine.Info {
	ctx, cancel := context.WithTimeout(context.Background(), g.reg.cfg.Deadlines.of(OpFactory))
	defer cancel()
	r, err := g.Resolve(ctx)
	if err != nil {
		return contextengine.Info{ID: LegacyID, Name: LegacyID}
	}
	return r.Info
}

// Dispose leaves the instance to the registry, which other slots share.
func (g *Guard) Dispose(context.Context) error { return nil }

// bound is a call that is ready to be made.
type bound[R any] = func(context.Context) (R, error)

// guarded is one call, whichever engine it goes to.
type guarded[R any] struct {
	op Operation
	// bind readies the call for an engine, with parameters of its own, before
	// anything runs apart from the caller.
	bind func(in *instance) bound[R]
	// check tells results that cannot be; foreign looks closer, at engines that
	// are not built in.
	check, foreign func(R) error
	// rethrow keeps the default engine from answering in a broken one's place.
	rethrow bool
}

// call makes a call of the slot's engine.
func call[R any](ctx context.Context, g *Guard, c guarded[R]) (R, error) {
	var none R
	if err := aborted(ctx); err != nil {
		return none, err
	}
	in, err := g.mount.acquire(ctx)
	if err != nil {
		return none, err
	}
	if in == nil { // set aside
		return byDefault(ctx, g, c)
	}
	res, err, broke := attempt(ctx, g, g.mount, in, c)
	if broke == nil {
		return res, err
	}
	failure := &contextengine.EngineFailedError{EngineID: in.ID, Operation: string(c.op), Err: broke}
	if g.mount.standing {
		return none, failure
	}
	// The error is the default engine's own, which this one is not.
	_ = g.mount.broken(in.generation, c.op, broke)
	if c.rethrow {
		return none, failure
	}
	res, err = byDefault(ctx, g, c)
	if err != nil && aborted(ctx) == nil {
		failure.Err = errors.Join(broke, fmt.Errorf("the default engine: %w", err))
		return none, failure
	}
	return res, err
}

// byDefault makes a call of the default engine.
func byDefault[R any](ctx context.Context, g *Guard, c guarded[R]) (R, error) {
	var none R
	in, err := g.reg.fallback.acquire(ctx)
	if err != nil {
		return none, err
	}
	res, err, broke := attempt(ctx, g, g.reg.fallback, in, c)
	if broke != nil {
		return none, &contextengine.EngineFailedError{EngineID: LegacyID, Operation: string(c.op), Err: broke}
	}
	return res, err
}

// attempt makes a call of one instance and leaves it. broke is what the engine
// did wrong, if anything; else err is the answer's.
//

func attempt[R any](ctx context.Context, g *Guard, m *mount, in *instance, c guarded[R]) (res R, err, broke error) {
	do := c.bind(in)
	limit := m.limit(in.entry, c.op)
	if in.core {
		defer in.leave()
		if res, err = within(ctx, limit, do); err == nil {
			return res, nil, verify(res, c.check)
		}
		if p, ok := err.(*panicError); ok { //nolint:errorlint // ours, never wrapped
			return res, nil, p
		}
		return res, err, nil
	}
	if n := in.abandoned.Load(); n >= maxAbandoned {
		in.leave()
		return res, nil, fmt.Errorf("%d calls that were given up have not ended", n)
	}
	res, err = apart(ctx, limit, do, hooks[R]{
		gaveUp: func() { in.abandoned.Add(1); g.reg.abandoned.Add(1) },
		ended: func(abandoned bool) {
			if abandoned {
				in.abandoned.Add(-1)
				g.reg.abandoned.Add(-1)
			}
			in.leave()
		},
	})
	if err == nil {
		if broke = verify(res, c.check); broke == nil {
			broke = verify(res, c.foreign)
		}
		return res, nil, broke
	}
	if _, ok := err.(*abortError); ok || blameless(err) { //nolint:errorlint // ours, never wrapped
		return res, err, nil
	}
	return res, nil, readable(err)
}

func verify[R any](res R, check func(R) error) error {
	if check == nil {
		return nil
	}
	return check(res)
}
