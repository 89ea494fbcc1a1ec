package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/audit"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// Engine is what serves the contract's calls.
type Engine interface {
	contextengine.Engine
	contextengine.Bootstrapper
	contextengine.BatchIngester
	contextengine.TurnCommitter
	contextengine.AfterTurner
	contextengine.Maintainer
}

// Steps are the calls that change what a window is made of.
type Steps interface {
	// Reset empties the window, or keeps what began at seq keepFrom.
	Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, reason string) (contextengine.StepResult, error)
	// Rewind moves the leaf to the newest message at or before toSeq.
	Rewind(ctx context.Context, s contextengine.Session, toSeq int64) (contextengine.StepResult, error)
	// UndoCompaction restores the set of summaries from before an epoch, the
	// newest compaction's when epoch is nil.
	UndoCompaction(ctx context.Context, s contextengine.Session, epoch *int64) (contextengine.StepResult, error)
}

// Transcripts are the calls by which a host syncs its own transcript.
type Transcripts interface {
	// Transcript stores a page, with the bookmark behind it.
	Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error)
	// TranscriptCursor reads the bookmark; an unknown session has none.
	TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error)
}

// Log is what the reading routes need of the store.
type Log interface {
	Session(ctx context.Context, tenant, key string) (store.Session, error)
	// Sessions lists those whose keys hold a text, in any case; all for "".
	Sessions(ctx context.Context, tenant, after, holding string, limit int) ([]store.SessionListing, error)
	// EventsWithin and FeedWithin stop behind the row that reached maxBytes.
	EventsWithin(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int, maxBytes int64) ([]events.Event, error)
	EventsOfType(ctx context.Context, tenant string, sid uuid.UUID, t events.Type, after, upto int64, limit int) ([]events.Event, error)
	FeedWithin(ctx context.Context, tenant string, after store.Cursor, limit int, maxBytes int64) ([]store.FeedEvent, error)
	// FeedBack is the place right before the newest n events.
	FeedBack(ctx context.Context, tenant string, n int) (store.Cursor, error)
	Recorded(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64]store.Recorded, error)
	StateAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (events.State, error)
	DebtOf(ctx context.Context, tenant string, sid uuid.UUID) (store.Debt, bool, error)
	Attempts(ctx context.Context, tenant string, sid uuid.UUID, limit int) ([]store.Attempt, error)
	CompactionCount(ctx context.Context, tenant string, sid uuid.UUID) (int64, error)
	DescentOf(ctx context.Context, tenant string, sid uuid.UUID, key string) (store.Descent, bool, error)
	Children(ctx context.Context, tenant string, sid uuid.UUID, limit int) ([]store.Descent, error)
}

var _ Log = (*store.Store)(nil)

// Lives are a session's beginning and end: the lease that opens it and the
// erasure after which only a tombstone is left.
type Lives interface {
	TakeLease(ctx context.Context, r store.LeaseRequest) (store.Lease, error)
	EndLease(ctx context.Context, tenant, key, token string) error
	HoldsLease(ctx context.Context, tenant, key, token string) error
	Erase(ctx context.Context, tenant, key string) (store.Erasure, error)
	EraseMany(ctx context.Context, tenant, prefix string) ([]store.Erasure, error)
}

var _ Lives = (*store.Store)(nil)

// Waker tells a stream that its session (or, with key "", its tenant) may have
// something new. It may lose signals: streams look for themselves as well.
type Waker interface {
	Wake(tenant, sessionKey string) (signal <-chan struct{}, cancel func())
}

// Check is one thing a node needs. It is ready without what is not required.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"`
	Detail   string `json:"detail,omitempty"`
}

// EngineStatus is a registered engine as operators see it.
type EngineStatus struct {
	contextengine.Info
	Owner string `json:"owner,omitempty"`
	// Slot is what the engine was chosen for, "" for one that only is
	// registered.
	Slot string `json:"slot,omitempty"`
	// Quarantine tells why the engine is set aside on this node.
	Quarantine string `json:"quarantine,omitempty"`
}

// Quarantine sets an engine aside on the answering node, until it is registered
// again, an operator clears it or the node ends.
type Quarantine struct {
	EngineID  string    `json:"engineId"`
	Operation string    `json:"operation"`
	Reason    string    `json:"reason"`
	FailedAt  time.Time `json:"failedAt"`
	Owner     string    `json:"owner,omitempty"`
}

// Config is what New needs. Engine, Steps, Branches, Log and Auth are required.
type Config struct {
	Engine   Engine
	Steps    Steps
	Branches Branches
	Log      Log
	// Transcripts takes hosts' transcripts over; nil where Engine does.
	Transcripts Transcripts
	// Lives serves leases and erasures; nil refuses them.
	Lives Lives
	// Search answers /v1/search; nil has none.
	Search Searcher
	// Summarizers are a tenant's configured summarizers, Summarization what workers
	// share about them; nil of either shows nothing of it.
	Summarizers   func(tenant string) []SummarizerRow
	Summarization Summarization
	// SpendMicros is what summaries may cost a tenant a day where nothing is set for
	// it, in millionths of a US dollar; 0 for no limit.
	SpendMicros int64
	// Auth names who a request comes from.
	Auth Auth
	// Local refuses requests whose Host is neither a loopback address, localhost
	// nor one of LocalNames. It is for a node without keys.
	Local      bool
	LocalNames []string
	// Ready answers what /readyz shows; nil is always ready.
	Ready func(ctx context.Context) []Check
	// Engines lists the registered engines; nil lists Engine alone.
	Engines func() EngineList
	// ClearQuarantine tells whether the engine was set aside; nil clears none.
	ClearQuarantine func(id string) bool
	Waker           Waker
	// Limiter holds tenants to their limits; nil to none.
	Limiter Limiter
	// MaxCalls is how many calls are answered at one time, streams and what
	// watches the node aside; 0 is without a limit.
	MaxCalls int
	// Audit takes an entry for each call; nil keeps none. AuditLog shows them.
	Audit    func(audit.Entry)
	AuditLog AuditLog
	Limits   Limits
	// Timeout bounds a call, CompactTimeout a compaction, BodyTimeout the
	// reading of a body; 30 s, 180 s and 60 s by default.
	Timeout        time.Duration
	CompactTimeout time.Duration
	BodyTimeout    time.Duration
	// Poll is how often a stream looks for news on its own, Heartbeat how often
	// it shows that it lives, StreamWrite how long one write to it may take;
	// 1 s, 15 s and 10 s by default.
	Poll        time.Duration
	Heartbeat   time.Duration
	StreamWrite time.Duration
	Logger      *slog.Logger
	Version     string
	// Registry takes the node's metrics and is what /metrics shows; nil makes
	// one.
	Registry *prometheus.Registry
	// Console, if any, serves /console/.
	Console http.Handler
}

func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil || c.Steps == nil || c.Branches == nil || c.Log == nil {
		return c, errors.New("api: Engine, Steps, Branches and Log are required")
	}
	if c.Transcripts == nil {
		c.Transcripts, _ = c.Engine.(Transcripts)
	}
	if c.Lives == nil {
		c.Lives = noLives{}
	}
	if c.Auth == nil {
		return c, errors.New("api: Auth is required; OpenAuth serves without keys")
	}
	if c.Engines == nil {
		engine := c.Engine
		c.Engines = func() EngineList {
			info := engine.Info()
			return EngineList{Serving: info.ID, Engines: []EngineStatus{{Info: info, Slot: "contextEngine"}}}
		}
	}
	if c.ClearQuarantine == nil {
		c.ClearQuarantine = func(string) bool { return false }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) []Check { return nil }
	}
	c.Limits = c.Limits.withDefaults()
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.CompactTimeout, 180*time.Second)
	setDefault(&c.BodyTimeout, 60*time.Second)
	setDefault(&c.Poll, time.Second)
	setDefault(&c.Heartbeat, 15*time.Second)
	setDefault(&c.StreamWrite, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	return c, nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
