package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/engined/engined/contextengine"
)

var errClosed = errors.New("the engines of this process are closed")

// mount holds the instance that serves under an id, and makes it when it is
// first needed and again after a new registration or a cleared quarantine.
type mount struct {
	reg *Registry
	id  string
	// standing is set for the default engine: nothing takes its place, so it is
	// never set aside.
	standing bool

	mu     sync.Mutex
	inst   *instance
	making *making
	closed bool
}

// making is an instance on its way. It is made for whoever waits, so that no
// caller that gives up ends it or begins another.
type making struct {
	done chan struct{}
	err  error
}

// acquire is the instance to call; leave it when the call has ended. It is nil
// without an error when the engine is set aside, which the default engine
// answers for.
func (m *mount) acquire(ctx context.Context) (*instance, error) {
	for {
		e, known, quarantined := m.reg.lookup(m.id)
		if quarantined {
			return nil, nil
		}
		if !known {
			return nil, m.broken(0, OpResolve, errors.New("not registered"))
		}
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			return nil, errClosed
		}
		if in := m.inst; in != nil && in.generation == e.generation && in.enter() {
			m.mu.Unlock()
			return in, nil
		}
		flight := m.making
		if flight == nil {
			flight = &making{done: make(chan struct{})}
			m.making = flight
			m.reg.retiring.Go(func() {
				in, err := m.make(context.WithoutCancel(ctx), e)
				m.put(in, flight, err)
			})
		}
		m.mu.Unlock()
		select {
		case <-flight.done:
			if flight.err != nil {
				return nil, flight.err
			}
		case <-ctx.Done():
			return nil, aborted(ctx)
		}
	}
}

// put mounts what was made, if anything was, in place of what is there.
func (m *mount) put(in *instance, flight *making, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.making = nil
	flight.err = err
	defer close(flight.done)
	if in == nil {
		return
	}
	if m.closed {
		m.dispose(in)
		return
	}
	if m.inst != nil {
		m.dispose(m.inst)
	}
	m.inst = in
}

// made is the info of the instance that serves.
func (m *mount) made() (contextengine.Info, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inst == nil {
		return contextengine.Info{}, false
	}
	return m.inst.info, true
}

// make calls the factory and holds what it made to the contract.
func (m *mount) make(ctx context.Context, e entry) (*instance, error) {
	in := &instance{entry: e, core: e.Owner == CoreOwner, idle: make(chan struct{})}
	made, err := apart(ctx, m.limit(e, OpFactory), e.Factory, hooks[contextengine.Engine]{
		late: func(engine contextengine.Engine) { m.end(in, engine) },
	})
	op := OpFactory
	if err == nil {
		in.engine, op = made, OpValidate
		in.info, err = apart(ctx, m.limit(e, OpValidate), func(context.Context) (contextengine.Info, error) {
			return inspect(made)
		}, hooks[contextengine.Info]{})
	}
	if err == nil {
		return in, nil
	}
	if op == OpValidate {
		m.reg.retiring.Go(func() { m.end(in, made) })
	}
	return nil, m.broken(e.generation, op, err)
}

// broken sets the engine aside and answers nil; the default engine can only
// fail.
func (m *mount) broken(generation uint64, op Operation, err error) error {
	if m.standing {
		return &contextengine.EngineFailedError{EngineID: m.id, Operation: string(op), Err: err}
	}
	m.reg.setAside(m.id, generation, op, err)
	m.mu.Lock()
	in := m.inst
	if in != nil && in.generation <= generation {
		m.inst = nil
	} else {
		in = nil
	}
	m.mu.Unlock()
	if in != nil {
		m.dispose(in)
	}
	return nil
}

// limit is an operation's deadline: the registration's own, else the registry's.
func (m *mount) limit(e entry, op Operation) time.Duration {
	if own := e.Deadlines.Of[op]; own > 0 {
		return own
	}
	if all := e.Deadlines.Call; all > 0 && op != OpCompact && op != OpDispose {
		return all
	}
	return m.reg.cfg.Deadlines.of(op)
}

// dispose ends an instance in the background: after its calls, or once they had
// the time that a disposal has.
func (m *mount) dispose(in *instance) {
	if !in.retire() {
		return
	}
	limit := m.limit(in.entry, OpDispose)
	m.reg.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		select {
		case <-in.idle:
		case <-ctx.Done():
		}
		m.end(in, in.engine)
	})
}

// end has an engine release what it holds, within the deadline for that.
func (m *mount) end(in *instance, engine contextengine.Engine) {
	if in.Shared || engine == nil {
		return
	}
	_, err := apart(context.Background(), m.limit(in.entry, OpDispose), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, dispose(ctx, engine)
	}, hooks[struct{}]{})
	if err != nil {
		m.reg.cfg.Logger.Warn("an engine was not disposed of", "engine", m.id, "error", reasonOf(err))
	}
}

func (m *mount) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.inst != nil {
		m.dispose(m.inst)
		m.inst = nil
	}
}

// inspect holds an engine to what the contract requires of every one.
func inspect(e contextengine.Engine) (contextengine.Info, error) {
	if e == nil {
		return contextengine.Info{}, errors.New("the factory returned no engine")
	}
	info := e.Info()
	return info, checkInfo(info)
}
