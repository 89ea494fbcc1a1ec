package engine

import (
	"sync"
	"sync/atomic"

	"github.com/engined/engined/contextengine"
)

// maxAbandoned is how many calls of one instance may have been given up without
// having ended. A call that heeds nothing can not be ended from outside; an
// engine that gathers them is set aside instead, so that the process holds at
// most this many and the calls that were under way then.
const maxAbandoned = 64

// instance is one engine, made and validated.
type instance struct {
	entry
	engine contextengine.Engine
	info   contextengine.Info
	// core engines are the program's own code: they heed their context and are
	// called without a goroutine in between.
	core bool

	abandoned atomic.Int64

	mu      sync.Mutex
	calls   int
	retired bool
	idle    chan struct{} // closed when the last call of a retired one ends
}

// enter begins a call, unless the instance is being disposed of.
func (in *instance) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.retired {
		return false
	}
	in.calls++
	return true
}

func (in *instance) leave() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls--
	if in.retired && in.calls == 0 {
		close(in.idle)
	}
}

// retire takes no more calls. The first to retire it gets true.
func (in *instance) retire() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.retired {
		return false
	}
	in.retired = true
	if in.calls == 0 {
		close(in.idle)
	}
	return true
}
