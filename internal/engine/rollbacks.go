package engine

import (
	"context"
	"sync"
)

// maxRollbacks bounds what a slot remembers of children that engines of others
// prepared. The oldest is forgotten: it has begun by then.
const maxRollbacks = 10_000

// rollbacks keeps the undoing of preparations that only a function knows, for a
// caller that knows the child's key. It is this process's alone.
type rollbacks struct {
	mu    sync.Mutex
	undo  map[childKey]func(context.Context) error
	order []childKey
}

type childKey struct{ tenant, key string }

func (r *rollbacks) put(tenant, key string, undo func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.undo == nil {
		r.undo = map[childKey]func(context.Context) error{}
	}
	k := childKey{tenant, key}
	if _, known := r.undo[k]; !known {
		r.order = append(r.order, k)
	}
	r.undo[k] = undo
	if len(r.order) > maxRollbacks {
		delete(r.undo, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *rollbacks) take(tenant, key string) (func(context.Context) error, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := childKey{tenant, key}
	undo, ok := r.undo[k]
	delete(r.undo, k)
	return undo, ok
}
