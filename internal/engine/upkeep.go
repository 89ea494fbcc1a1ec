package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/engined/engined/contextengine"
)

// UpkeepConfig bounds the maintenance that runs behind the answers.
type UpkeepConfig struct {
	// Parallel is how many sessions are maintained at once, default 4; Waiting how
	// many more may wait, default 1024. Beyond, a request is dropped: the session's
	// next turn asks again.
	Parallel, Waiting int
}

// UpkeepStats counts maintenance by outcome.
type UpkeepStats struct {
	Changed, Unchanged, Failed, Coalesced, Dropped uint64
}

// Upkeep is a slot's engine with maintenance after a bootstrap, a successful turn
// and a compaction, as hosts do it. After a turn of an engine that wants it in
// the background the answer does not wait: of each session one run goes on and one
// waits, which later requests join. A failed maintenance fails no call.
type Upkeep struct {
	*Guard
	cfg UpkeepConfig

	ctx  context.Context //nolint:containedctx // the life of the background
	end  context.CancelCauseFunc
	wait sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	// runs has the sessions that are maintained or wait for it; queue those that
	// wait, oldest first.
	runs    map[sessionID]*upkeepRun
	queue   []sessionID
	running int

	changed, unchanged, failed, coalesced, dropped atomic.Uint64
}

type sessionID struct{ tenant, key string }

// upkeepRun is a session's maintenance. next is that of a request that came while
// the run went on.
type upkeepRun struct {
	params  contextengine.MaintainParams
	next    *contextengine.MaintainParams
	started bool
}

// errStopped ends the background.
var errStopped = errors.New("the node is stopping")

// NewUpkeep wraps a slot. Stop ends what runs in the background.
func NewUpkeep(g *Guard, cfg UpkeepConfig) *Upkeep {
	if cfg.Parallel <= 0 {
		cfg.Parallel = 4
	}
	if cfg.Waiting <= 0 {
		cfg.Waiting = 1024
	}
	u := &Upkeep{Guard: g, cfg: cfg, runs: make(map[sessionID]*upkeepRun)}
	u.ctx, u.end = context.WithCancelCause(context.Background())
	return u
}

// Bootstrap takes a history over, then maintains.
func (u *Upkeep) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	res, err := u.Guard.Bootstrap(ctx, p)
	if err == nil {
		u.maintain(ctx, contextengine.MaintainParams{
			Session: p.Session, SessionTarget: p.SessionTarget, RuntimeSettings: p.RuntimeSettings, RuntimeContext: p.RuntimeContext,
			Reason: contextengine.MaintainAfterBootstrap,
		})
	}
	return res, err
}

// CommitTurn stores a turn, then maintains, also where the turn was known.
func (u *Upkeep) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	res, err := u.Guard.CommitTurn(ctx, p)
	if err == nil {
		u.afterTurn(ctx, p.Session, p.SessionTarget, p.RuntimeContext)
	}
	return res, err
}

// AfterTurn hears of a turn's end, then maintains.
func (u *Upkeep) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	res, err := u.Guard.AfterTurn(ctx, p)
	if err == nil {
		u.afterTurn(ctx, p.Session, p.SessionTarget, p.RuntimeContext)
	}
	return res, err
}

// Compact compacts, then maintains if that made the window smaller.
func (u *Upkeep) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	res, err := u.Guard.Compact(ctx, p)
	if err == nil && res.OK && res.Compacted {
		u.maintain(ctx, contextengine.MaintainParams{
			Session: p.Session, SessionTarget: p.SessionTarget, RuntimeSettings: p.RuntimeSettings, RuntimeContext: p.RuntimeContext,
			Reason: contextengine.MaintainAfterCompaction,
		})
	}
	return res, err
}

// afterTurn leaves out the settings: hosts send none with this reason.
func (u *Upkeep) afterTurn(ctx context.Context, s contextengine.Session, target *contextengine.SessionTarget, rc *contextengine.RuntimeContext) {
	p := contextengine.MaintainParams{Session: s, SessionTarget: target, RuntimeContext: rc, Reason: contextengine.MaintainAfterTurn}
	if !u.background(ctx) {
		u.maintain(ctx, p)
		return
	}
	deferred := contextengine.RuntimeContext{}
	if rc != nil {
		deferred = *rc
	}
	deferred.AllowDeferredCompaction = true
	p.RuntimeContext = &deferred
	u.ask(p)
}

func (u *Upkeep) background(ctx context.Context) bool {
	r, err := u.Resolve(ctx)
	return err == nil && r.Info.TurnMaintenanceMode == contextengine.BackgroundMaintenance
}

// maintain counts; what went wrong the guard has dealt with and told.
func (u *Upkeep) maintain(ctx context.Context, p contextengine.MaintainParams) {
	res, err := u.Guard.Maintain(ctx, p)
	switch {
	case err != nil:
		u.failed.Add(1)
	case res.Changed:
		u.changed.Add(1)
	default:
		u.unchanged.Add(1)
	}
}

// ask queues a session's maintenance, or joins the run that waits already.
func (u *Upkeep) ask(p contextengine.MaintainParams) {
	id := sessionID{p.Tenant, p.SessionKey}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		u.dropped.Add(1)
		return
	}
	if r := u.runs[id]; r != nil {
		if r.started {
			if r.next != nil {
				u.coalesced.Add(1)
			}
			r.next = &p
			return
		}
		u.coalesced.Add(1)
		r.params = p
		return
	}
	if len(u.queue) >= u.cfg.Waiting {
		u.dropped.Add(1)
		return
	}
	u.runs[id] = &upkeepRun{params: p}
	u.queue = append(u.queue, id)
	if u.running < u.cfg.Parallel {
		u.running++
		u.wait.Go(u.work)
	}
}

// work maintains what waits, until nothing does.
func (u *Upkeep) work() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.queue) > 0 && !u.stopped {
		id := u.queue[0]
		u.queue = u.queue[1:]
		r := u.runs[id]
		r.started = true
		u.mu.Unlock()
		u.maintain(u.ctx, r.params)
		u.mu.Lock()
		delete(u.runs, id)
		if r.next != nil {
			// Behind those that wait: one busy session does not hold up the rest.
			u.runs[id] = &upkeepRun{params: *r.next}
			u.queue = append(u.queue, id)
		}
	}
	u.running--
}

// Stop drops what waits, aborts what runs and waits for it until ctx ends.
func (u *Upkeep) Stop(ctx context.Context) error {
	u.mu.Lock()
	u.stopped = true
	u.dropped.Add(uint64(len(u.queue)))
	u.queue = nil
	u.mu.Unlock()
	u.end(errStopped)
	done := make(chan struct{})
	go func() { u.wait.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats counts what was done so far.
func (u *Upkeep) Stats() UpkeepStats {
	return UpkeepStats{
		Changed: u.changed.Load(), Unchanged: u.unchanged.Load(), Failed: u.failed.Load(),
		Coalesced: u.coalesced.Load(), Dropped: u.dropped.Load(),
	}
}
