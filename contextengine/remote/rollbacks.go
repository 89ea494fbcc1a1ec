package remote

import (
	"context"
	"sync"

	"github.com/engined/engined/contextengine"
)

// maxRollbacks bounds what a handler remembers of children that were readied.
// The oldest is forgotten: it has begun, or the engine's own limit removes it.
const maxRollbacks = 10_000

// rollbacks keeps the undoing of preparations: a function cannot cross the wire.
type rollbacks struct {
	mu    sync.Mutex
	undo  map[child]func(context.Context) error
	order []child
}

type child struct{ tenant, key string }

func (r *rollbacks) put(c child, undo func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.undo == nil {
		r.undo = map[child]func(context.Context) error{}
	}
	r.undo[c] = undo
	if r.order = append(r.order, c); len(r.order) > maxRollbacks {
		delete(r.undo, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *rollbacks) take(c child) (func(context.Context) error, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	undo, ok := r.undo[c]
	delete(r.undo, c)
	return undo, ok
}

func serveSpawn(e contextengine.SubagentSpawner, undo *rollbacks) route {
	return func(q *request) ([]byte, error) {
		var p contextengine.PrepareSubagentSpawnParams
		if err := q.decode(&p); err != nil {
			return nil, err
		}
		if err := checkChild(p.ChildSessionKey); err != nil {
			return nil, err
		}
		switch p.ContextMode {
		case "", contextengine.ContextIsolated, contextengine.ContextFork:
		default:
			return nil, invalid("contextMode", `must be "isolated" or "fork"`)
		}
		q.name(&p.Session)
		prepared, err := e.PrepareSubagentSpawn(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		if prepared == nil {
			return answer(spawnAnswer{})
		}
		id := prepared.PreparationID
		if id == "" {
			id = p.ChildSessionKey
		}
		if prepared.Rollback != nil {
			undo.put(child{q.tenant, p.ChildSessionKey}, prepared.Rollback)
		}
		return answer(spawnAnswer{PreparationID: id})
	}
}

// serveRollback undoes a preparation once. One that failed may be tried again.
func serveRollback(undo *rollbacks) route {
	return func(q *request) ([]byte, error) {
		c := child{q.tenant, q.place.child}
		f, ok := undo.take(c)
		if ok {
			if err := f(q.r.Context()); err != nil {
				undo.put(c, f)
				return nil, err
			}
		}
		return answer(rollbackAnswer{RolledBack: &ok})
	}
}

func serveEnded(e contextengine.SubagentEnder) route {
	return func(q *request) ([]byte, error) {
		var p contextengine.SubagentEndedParams
		if err := q.decode(&p); err != nil {
			return nil, err
		}
		p.ChildSessionKey = q.place.child
		if err := checkChild(p.ChildSessionKey); err != nil {
			return nil, err
		}
		if !p.Reason.Known() {
			return nil, invalid("reason", "must be deleted, completed, swept or released")
		}
		q.name(&p.Session)
		res, err := e.OnSubagentEnded(q.r.Context(), p)
		if err != nil {
			return nil, err
		}
		return answer(endedAnswer{Ended: &res.Ended})
	}
}
