package bus

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a delay that doubles from Min with each failure up to Max. A
// random part of up to half is taken off, so that jobs that failed together
// do not return together.
type Backoff struct {
	Min, Max time.Duration
}

func newBackoff(least, most time.Duration) Backoff { return Backoff{Min: least, Max: most} }

// Delay after failure n, from 1.
func (b Backoff) Delay(n int) time.Duration {
	d := b.Min
	for ; n > 1 && d < b.Max; n-- {
		d *= 2
	}
	d = min(d, b.Max)
	if half := d / 2; half > 0 {
		d -= rand.N(half)
	}
	return d
}

// sleep waits for Delay(n) or ctx.
func (b Backoff) sleep(ctx context.Context, n int) {
	t := time.NewTimer(b.Delay(n))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
