package engine

import (
	"context"
	"time"

	"github.com/engined/engined/internal/store"
)

const (
	answerQueue    = 4096
	answerBatch    = 256
	answerInterval = time.Second
)

// answers records what was assembled, in batches, off the answer's path. When
// Postgres is slower than the windows, the newest records are dropped: they
// can be made again from the log and the parameters.
type answers struct {
	cfg   Config
	queue chan store.Answer
	stop  chan struct{}
	done  chan struct{}
}

func newAnswers(cfg Config) *answers {
	a := &answers{
		cfg: cfg, queue: make(chan store.Answer, answerQueue), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go a.run()
	return a
}

func (a *answers) add(rec store.Answer) {
	select {
	case a.queue <- rec:
	default:
	}
}

func (a *answers) run() {
	defer close(a.done)
	tick := time.NewTicker(answerInterval)
	defer tick.Stop()
	var batch []store.Answer
	flush := func() {
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := a.cfg.Log.RecordAnswers(ctx, batch); err != nil {
			a.cfg.Logger.Warn("window answers were not recorded", "count", len(batch), "error", err)
		}
		batch = batch[:0]
	}
	for {
		select {
		case rec := <-a.queue:
			if batch = append(batch, rec); len(batch) == answerBatch {
				flush()
			}
		case <-tick.C:
			flush()
		case <-a.stop:
			for len(a.queue) > 0 {
				batch = append(batch, <-a.queue)
			}
			flush()
			return
		}
	}
}

// close writes what waits and ends the recording.
func (a *answers) close(ctx context.Context) error {
	select {
	case <-a.stop:
	default:
		close(a.stop)
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
