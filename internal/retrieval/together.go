package retrieval

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// readers is how many parts of a text one search looks at together, at the most.
const readers = 4

// together calls do for each number below n, in their order and several at a
// time. A worker that hears false ends.
func together(n, workers int, do func(i int) bool) {
	var next atomic.Int64
	work := func() {
		for {
			if i := int(next.Add(1)) - 1; i >= n || !do(i) {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for range min(workers, runtime.GOMAXPROCS(0)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}
