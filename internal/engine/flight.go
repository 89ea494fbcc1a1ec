package engine

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// flights lets one compaction per session run at a time on a node. Two nodes
// may still plan the same one; the epoch decides between them.
type flights struct {
	mu   sync.Mutex
	busy map[uuid.UUID]chan struct{}
}

// enter waits for its turn, or for ctx to end. done lets the next one in.
func (f *flights) enter(ctx context.Context, sid uuid.UUID) (done func(), err error) {
	for {
		f.mu.Lock()
		running, ok := f.busy[sid]
		if !ok {
			if f.busy == nil {
				f.busy = make(map[uuid.UUID]chan struct{})
			}
			mine := make(chan struct{})
			f.busy[sid] = mine
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.busy, sid)
				f.mu.Unlock()
				close(mine)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
