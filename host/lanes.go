package host

import (
	"context"
	"sync"
)

// lane names what must happen one after the other.
type lane struct{ tenant, key string }

// lanes lets one at a time into each lane.
type lanes struct {
	mu   sync.Mutex
	open map[lane]*gate
}

// gate holds one token; users counts who holds or awaits it.
type gate struct {
	token chan struct{}
	users int
}

// enter waits for the lane and returns how to leave it.
func (l *lanes) enter(ctx context.Context, id lane) (leave func(), err error) {
	l.mu.Lock()
	if l.open == nil {
		l.open = map[lane]*gate{}
	}
	g := l.open[id]
	if g == nil {
		g = &gate{token: make(chan struct{}, 1)}
		l.open[id] = g
	}
	g.users++
	l.mu.Unlock()
	drop := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(l.open, id)
		}
	}
	select {
	case g.token <- struct{}{}:
		return func() { <-g.token; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, aborted(ctx, "wait for the session")
	}
}

// background runs what a turn does not wait for: one thing at a time and lane,
// and one more that waits, which stands for all that came since.
type background struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelFunc
	waiting map[lane]func(context.Context)
	active  map[lane]bool
	running sync.WaitGroup
}

func (b *background) start() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.waiting, b.active = map[lane]func(context.Context){}, map[lane]bool{}
}

// run starts do, or leaves it waiting in place of what waited before.
func (b *background) run(id lane, do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	b.waiting[id] = do
	if b.active[id] {
		return
	}
	b.active[id] = true
	b.running.Go(func() {
		for {
			next := b.next(id)
			if next == nil {
				return
			}
			next(b.ctx)
		}
	})
}

func (b *background) next(id lane) func(context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do := b.waiting[id]
	delete(b.waiting, id)
	if do == nil || b.ctx.Err() != nil {
		delete(b.active, id)
		return nil
	}
	return do
}

func (b *background) close(ctx context.Context) error {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		b.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return aborted(ctx, "close")
	}
}
