package hooks

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/engine"
)

// Bus publishes that something happened. It does not block.
type Bus interface {
	CompactionStarting(tenant string, sid uuid.UUID, seq, epoch int64)
	CompactionFinished(tenant string, sid uuid.UUID, seq, epoch int64)
}

// Config configures hooks. Without a URL there is no webhook.
type Config struct {
	Bus Bus
	// URL takes POST requests; Secret signs them (see Sign) and may be empty.
	URL    string
	Secret string
	// Timeout is how long the hook before a compaction is waited for, default 5 s,
	// and each attempt of the one after it.
	Timeout time.Duration
	// Attempts is how often the hook after a compaction is tried, default 3, with
	// Pause (default 1 s, doubled) in between. Waiting bounds those in the queue,
	// default 256; further ones are dropped.
	Attempts, Waiting int
	Pause             time.Duration
	Client            *http.Client
	Now               func() time.Time
	Logger            *slog.Logger
}

// Stats counts webhooks by outcome.
type Stats struct {
	BeforeOK, BeforeFailed, BeforeTimeout, AfterOK, AfterFailed, AfterDropped uint64
}

// Hooks implements engine.CompactionHooks.
type Hooks struct {
	cfg   Config
	queue chan engine.CompactionEvent
	ctx   context.Context //nolint:containedctx // the life of the sender
	end   context.CancelFunc
	done  chan struct{}
	once  sync.Once

	stats struct{ beforeOK, beforeFailed, beforeTimeout, afterOK, afterFailed, afterDropped atomic.Uint64 }
}

var _ engine.CompactionHooks = (*Hooks)(nil)

// New starts the sender of hooks after compactions. Stop ends it.
func New(cfg Config) *Hooks {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Attempts <= 0 {
		cfg.Attempts = 3
	}
	if cfg.Waiting <= 0 {
		cfg.Waiting = 256
	}
	if cfg.Pause <= 0 {
		cfg.Pause = time.Second
	}
	if cfg.Client == nil {
		// Its own connections, and no redirects: the secret's signature is for one place.
		cfg.Client = &http.Client{
			Transport:     &http.Transport{MaxIdleConns: 16, IdleConnTimeout: time.Minute, MaxConnsPerHost: 16},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("component", "hooks")
	h := &Hooks{cfg: cfg, queue: make(chan engine.CompactionEvent, cfg.Waiting), done: make(chan struct{})}
	h.ctx, h.end = context.WithCancel(context.Background())
	go h.send()
	return h
}

// Before publishes, then waits for the webhook, for the timeout at most. An error
// tells what became of the webhook.
func (h *Hooks) Before(ctx context.Context, e engine.CompactionEvent) error {
	if h.cfg.Bus != nil {
		h.cfg.Bus.CompactionStarting(e.Tenant, e.SID, e.Head, e.Epoch)
	}
	if h.cfg.URL == "" {
		return nil
	}
	err := h.post(ctx, beforeType, &e)
	switch {
	case err == nil:
		h.stats.beforeOK.Add(1)
	case errors.Is(err, context.DeadlineExceeded):
		h.stats.beforeTimeout.Add(1)
	default:
		h.stats.beforeFailed.Add(1)
	}
	return err
}

// After publishes and queues the webhook.
func (h *Hooks) After(e engine.CompactionEvent) {
	if h.cfg.Bus != nil {
		h.cfg.Bus.CompactionFinished(e.Tenant, e.SID, e.Head, e.Epoch)
	}
	if h.cfg.URL == "" {
		return
	}
	select {
	case <-h.ctx.Done():
		h.stats.afterDropped.Add(1)
	case h.queue <- e:
	default:
		h.stats.afterDropped.Add(1)
		h.cfg.Logger.Warn("a hook after a compaction was dropped: too many wait", "hook", e.ID)
	}
}

// send posts what is queued, one after the other, so that it arrives in order.
func (h *Hooks) send() {
	defer close(h.done)
	for {
		select {
		case <-h.ctx.Done():
			h.stats.afterDropped.Add(uint64(len(h.queue)))
			return
		case e := <-h.queue:
			h.deliver(&e)
		}
	}
}

func (h *Hooks) deliver(e *engine.CompactionEvent) {
	pause := h.cfg.Pause
	for attempt := 1; ; attempt++ {
		err := h.post(h.ctx, afterType, e)
		if err == nil {
			h.stats.afterOK.Add(1)
			return
		}
		if attempt == h.cfg.Attempts || h.ctx.Err() != nil {
			h.stats.afterFailed.Add(1)
			h.cfg.Logger.Warn("the hook after a compaction was given up", "hook", e.ID, "attempts", attempt, "error", err)
			return
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// Stop aborts what is under way, drops what waits, and waits for that until ctx
// ends.
func (h *Hooks) Stop(ctx context.Context) error {
	h.once.Do(h.end)
	select {
	case <-h.done:
		h.cfg.Client.CloseIdleConnections()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats counts what was sent so far.
func (h *Hooks) Stats() Stats {
	return Stats{
		BeforeOK: h.stats.beforeOK.Load(), BeforeFailed: h.stats.beforeFailed.Load(), BeforeTimeout: h.stats.beforeTimeout.Load(),
		AfterOK: h.stats.afterOK.Load(), AfterFailed: h.stats.afterFailed.Load(), AfterDropped: h.stats.afterDropped.Load(),
	}
}
