package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// Log is the part of the store that the engines use.
type Log interface {
	Append(ctx context.Context, it *store.Item) (store.Appended, error)
	Session(ctx context.Context, tenant, key string) (store.Session, error)
	View(ctx context.Context, tenant, key string, cached uuid.UUID, cachedHead int64, limit int) (store.View, error)
	StateAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (events.State, error)
	DialectAsOf(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (message.Dialect, error)
	StateOfEpoch(ctx context.Context, tenant string, sid uuid.UUID, epoch int64) (events.State, error)
	Facts(ctx context.Context, tenant string, sid uuid.UUID, upto, since int64, limit int) ([]window.Entry, error)
	CountMessages(ctx context.Context, tenant string, sid uuid.UUID, runs []events.Range) (int64, error)
	Bodies(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64][]byte, error)
	Recorded(ctx context.Context, tenant string, sid uuid.UUID, seqs []int64) (map[int64]store.Recorded, error)
	Caller(ctx context.Context, tenant string, sid uuid.UUID, callID string, before int64) (window.Entry, error)
	EventsOfType(ctx context.Context, tenant string, sid uuid.UUID, t events.Type, after, upto int64, limit int) ([]events.Event, error)
	NewestOfType(ctx context.Context, tenant string, sid uuid.UUID, t events.Type, upto int64) (seq int64, body []byte, err error)
	MessageHashes(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int) ([]store.MessageHash, error)
	Parents(ctx context.Context, tenant string, sid uuid.UUID, upto, after int64, limit int) ([]store.Parent, error)
	KnownKeys(ctx context.Context, tenant, key string, kind store.KeyKind, keys [][]byte) (map[string]int64, error)
	StepEpoch(ctx context.Context, tenant, key string, planned int64,
		build func(cur store.Session, state events.State, first int64) (store.EpochStep, error)) (store.Stepped, error)
	OpenChild(ctx context.Context, c *store.NewChild) (store.Appended, error)
	ChildByKey(ctx context.Context, tenant, key string) (store.Session, store.Descent, error)
	EndSubagent(ctx context.Context, tenant string, d store.Descent, reason string, e store.NewEvent) error
	RemoveChild(ctx context.Context, tenant, key string, sid uuid.UUID) error
	InLane(ctx context.Context, tenant, key string, l store.Lane, fn func(*store.LaneTx) error) error
	EntryID(ctx context.Context, tenant string, sid uuid.UUID, seq int64) (string, error)
	LaneCursor(ctx context.Context, tenant, key string, l store.Lane) (cursor []byte, revision string, err error)
	Erased(ctx context.Context, tenant, key, hostSession string) (bool, error)
	Draft(ctx context.Context, tenant string, sid uuid.UUID, key []byte) ([]byte, bool, error)
	PutDraft(ctx context.Context, tenant string, sid uuid.UUID, key, draft []byte) error
	RecordAnswers(ctx context.Context, answers []store.Answer) error
	AnswersAt(ctx context.Context, tenant string, sid uuid.UUID, head int64, limit int) ([]store.Answer, error)
}

// Notifier hears what others should know soon. It never blocks and may lose
// what it hears: Postgres holds what is owed.
type Notifier interface {
	TurnCompleted(tenant string, sid uuid.UUID, seq, epoch int64)
	EpochRotated(tenant string, sid uuid.UUID, seq, epoch int64)
	CompactionOwed(tenant string, sid uuid.UUID, epoch int64)
}

// Summarizers choose for a tenant and session. lastResort lets a rule write what
// no model would.
type Summarizers interface {
	For(tenant string, sid uuid.UUID, lastResort bool) summarize.Summarizer
	// Cost is what calls with so many tokens would cost, in millionths of a US
	// dollar; 0 where no price is known.
	Cost(tenant string, inputTokens, outputTokens int64) int64
}

// Config is what the built-in engines need.
type Config struct {
	Log      Log
	Notifier Notifier
	// Summarizers say who writes a session's summaries; nil is Summarizer for all.
	Summarizers Summarizers
	Summarizer  summarize.Summarizer
	Policy      compact.Policy
	// Parallel is how many summaries of a compaction are written at once.
	Parallel int
	// LastResortAfter is after how many failed tries a rule may write in the
	// models' place; 0 for never.
	LastResortAfter int
	// Prune says how windows show old tool results; the zero value shows them as
	// they are. Compactions are planned as if nothing was pruned.
	Prune window.Pruning
	// Hooks hear of compactions; nil is nobody.
	Hooks CompactionHooks
	// Rewriting is what maintenance does.
	Rewriting Rewriting
	// RollingTurns is how many turns Rolling keeps verbatim, 0 for its own number.
	RollingTurns int
	// Passages finds older passages for Recall, which is Lossless without.
	Passages Passages
	// PassageWait is how long a window waits for them; by default 300 ms.
	PassageWait time.Duration
	// DefaultBudget serves sessions that never reported one, in tokens.
	DefaultBudget int
	// Models give a budget to sessions whose host tells the model but no budget,
	// and thresholds to those of their models.
	Models Models
	Limits message.Limits
	// MaxBatch is the most messages of one call.
	MaxBatch int
	// SubagentTTL is how long a sub-agent may take to write first where its host
	// does not say; then it is removed.
	SubagentTTL time.Duration
	// CacheBytes bounds the bodies that a node keeps between assembles.
	CacheBytes int
	Now        func() time.Time
	Logger     *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Notifier == nil {
		c.Notifier = silent{}
	}
	if c.Summarizer == nil {
		c.Summarizer = summarize.Extractive{}
	}
	c.Policy = c.Policy.WithDefaults()
	c.Rewriting = c.Rewriting.withDefaults()
	if c.DefaultBudget == 0 {
		c.DefaultBudget = 128_000
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 10_000
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 64 << 20
	}
	if c.SubagentTTL == 0 {
		c.SubagentTTL = 24 * time.Hour
	}
	if c.PassageWait == 0 {
		c.PassageWait = passageWait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

type silent struct{}

func (silent) TurnCompleted(string, uuid.UUID, int64, int64) {}
func (silent) EpochRotated(string, uuid.UUID, int64, int64)  {}
func (silent) CompactionOwed(string, uuid.UUID, int64)       {}
