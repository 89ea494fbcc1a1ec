// Package audit records who read or changed what: which key called which route
// on which session, when, and with what outcome. Never what was read or written.
//
// Entries are gathered and written in batches behind the answers. With Postgres
// away they wait, up to a bound; what is dropped beyond it is counted and told.
package audit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is one call.
type Entry struct {
	Tenant string
	At     time.Time
	// Key is the id of the API key.
	Key string
	// Request is the id that the answer and the node's log carry.
	Request       string
	Method, Route string
	// Session is the key in the path, if there is one.
	Session string
	Status  int
}

// Sink is where entries are kept.
type Sink interface {
	RecordAudit(ctx context.Context, entries []Entry) error
	// ForgetAudit deletes up to limit entries from before a time.
	ForgetAudit(ctx context.Context, before time.Time, limit int) (int64, error)
}

const (
	queueLength  = 16384
	batchLength  = 512
	interval     = time.Second
	writeTimeout = 10 * time.Second
	// forgetEvery and forgetStep bound the work of the retention.
	forgetEvery = 10 * time.Minute
	forgetStep  = 5000
)

// Recorder gathers entries.
type Recorder struct {
	sink      Sink
	retention time.Duration
	log       *slog.Logger

	queue   chan Entry
	dropped atomic.Uint64
	stop    chan struct{}
	ended   chan struct{}
	once    sync.Once
}

// NewRecorder makes a recorder; Close ends what it runs. Entries older than
// retention are forgotten; with 0 none are.
func NewRecorder(sink Sink, retention time.Duration, log *slog.Logger) *Recorder {
	r := &Recorder{
		sink: sink, retention: retention, log: log.With("component", "audit"),
		queue: make(chan Entry, queueLength), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go r.run()
	return r
}

// Add takes an entry. It never waits.
func (r *Recorder) Add(e Entry) {
	select {
	case r.queue <- e:
	default:
		r.dropped.Add(1)
	}
}

// Dropped is how many entries were lost since the start.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

func (r *Recorder) run() {
	defer close(r.ended)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	r.forget()
	var batch []Entry
	var told uint64
	for {
		// A full batch that could not be written is tried again with each tick.
		queue := r.queue
		if len(batch) >= batchLength {
			queue = nil
		}
		select {
		case e := <-queue:
			if batch = append(batch, e); len(batch) < batchLength {
				continue
			}
		case <-tick.C:
		case <-forget.C:
			r.forget()
		case <-r.stop:
			r.last(batch)
			return
		}
		if r.write(batch) {
			batch = batch[:0]
		}
		if n := r.dropped.Load(); n > told {
			r.log.Error("audit entries were lost", "count", n-told)
			told = n
		}
	}
}

// last writes what is left, as long as that works.
func (r *Recorder) last(batch []Entry) {
	for {
		for len(r.queue) > 0 && len(batch) < batchLength {
			batch = append(batch, <-r.queue)
		}
		if len(batch) == 0 {
			return
		}
		if !r.write(batch) {
			r.log.Error("audit entries were lost", "count", len(batch)+len(r.queue))
			return
		}
		batch = batch[:0]
	}
}

func (r *Recorder) write(batch []Entry) bool {
	if len(batch) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := r.sink.RecordAudit(ctx, batch); err != nil {
		r.log.Warn("audit entries wait", "count", len(batch), "error", err)
		return false
	}
	return true
}

func (r *Recorder) forget() {
	if r.retention <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	before := time.Now().Add(-r.retention)
	for {
		n, err := r.sink.ForgetAudit(ctx, before, forgetStep)
		if err != nil {
			r.log.Warn("old audit entries stay for now", "error", err)
			return
		}
		if n < forgetStep {
			return
		}
	}
}

// Close writes what waits and ends. It may be called more than once.
func (r *Recorder) Close(ctx context.Context) error {
	r.once.Do(func() { close(r.stop) })
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
