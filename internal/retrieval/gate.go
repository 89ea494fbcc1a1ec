package retrieval

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrBusy: as many searches run and wait as may at one time.
var ErrBusy = errors.New("too many searches at one time")

const (
	// patience is how long a search waits for its turn.
	patience = 2 * time.Second
	// queued is how many wait for each that runs.
	queued = 4
)

// gate lets a number of searches run at one time. Each holds a connection of
// the pool that appends and windows share; those beyond wait here, where they
// hold none.
type gate struct {
	places  chan struct{}
	waiting atomic.Int64
	refused atomic.Uint64
}

// AtOnce has at most n searches run at one time, 0 any number. More wait for a
// moment, more than that get ErrBusy. It is called before the first search.
func (s *Searcher) AtOnce(n int) *Searcher {
	if n > 0 {
		s.gate = &gate{places: make(chan struct{}, n)}
	}
	return s
}

// Load tells how many searches run and wait, and how many were refused so far.
func (s *Searcher) Load() (running, waiting int, refused uint64) {
	if s.gate == nil {
		return 0, 0, 0
	}
	return len(s.gate.places), int(s.gate.waiting.Load()), s.gate.refused.Load()
}

func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	leave = func() { <-g.places }
	select {
	case g.places <- struct{}{}:
		return leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > int64(queued*cap(g.places)) {
		g.refused.Add(1)
		return nil, ErrBusy
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case g.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over.C:
		g.refused.Add(1)
		return nil, ErrBusy
	}
}
