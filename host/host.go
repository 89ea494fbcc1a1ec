package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/engined/engined/contextengine"
)

// Config is what a host needs. Engine and Model are required.
type Config struct {
	Engine contextengine.Engine
	Model  Model
	// Tools may be nil.
	Tools  Tools
	Limits Limits
	// Estimate counts the tokens of a message roughly. Default: a quarter of its
	// bytes.
	Estimate func(json.RawMessage) int
	// Logger hears what an engine did wrong. Default: nobody.
	Logger *slog.Logger
}

// Limits bound a turn. The zero value is the defaults.
type Limits struct {
	// MaxCompactions is how often an overflow is answered by a compaction.
	// Default 3.
	MaxCompactions int
	// MaxTimeoutCompactions is how often a model that does not answer in time
	// with a large prompt is given a smaller one. Default 2.
	MaxTimeoutCompactions int
	// CompactTimeout ends a compaction that takes too long, and the turn with
	// it if the model waits for it. Default 180 s.
	CompactTimeout time.Duration
	// EngineTimeout bounds every other call of the engine. Default 30 s.
	EngineTimeout time.Duration
	// ModelTimeout bounds a model call, ToolTimeout a tool's. Default 10 min.
	ModelTimeout, ToolTimeout time.Duration
	// MaxModelCalls bounds the tool loop. Default 100.
	MaxModelCalls int
	// ProactiveShare is the share of the budget at which the loop compacts
	// before the model is asked. Default 0.9; negative for never.
	ProactiveShare float64
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxCompactions:        cmp.Or(l.MaxCompactions, 3),
		MaxTimeoutCompactions: cmp.Or(l.MaxTimeoutCompactions, 2),
		CompactTimeout:        cmp.Or(l.CompactTimeout, 180*time.Second),
		EngineTimeout:         cmp.Or(l.EngineTimeout, 30*time.Second),
		ModelTimeout:          cmp.Or(l.ModelTimeout, 10*time.Minute),
		ToolTimeout:           cmp.Or(l.ToolTimeout, 10*time.Minute),
		MaxModelCalls:         cmp.Or(l.MaxModelCalls, 100),
		ProactiveShare:        cmp.Or(l.ProactiveShare, 0.9),
	}
}

// timeoutShare is how full a prompt must be for a timeout to be put down to it.
const timeoutShare = 0.65

// Host runs turns. Its methods may be called at the same time.
type Host struct {
	cfg   Config
	info  contextengine.Info
	lanes lanes
	// background holds what runs on after a turn.
	background background
}

// New makes a host. Close it to end what runs in the background.
func New(cfg Config) (*Host, error) {
	if cfg.Engine == nil || cfg.Model == nil {
		return nil, errors.New("host: an engine and a model are required")
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Tools == nil {
		cfg.Tools = noTools{}
	}
	if cfg.Estimate == nil {
		cfg.Estimate = func(m json.RawMessage) int { return (len(m) + 3) / 4 }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Host{cfg: cfg, info: cfg.Engine.Info()}
	if missing := h.info.Missing(contextengine.OpAgentRun, capabilities()); len(missing) > 0 {
		return nil, &RequirementError{
			EngineID: h.info.ID, Missing: missing, Message: h.info.HostRequirements[contextengine.OpAgentRun].UnsupportedMessage,
		}
	}
	h.background.start()
	return h, nil
}

// capabilities are what this host can do for an engine.
func capabilities() []contextengine.Capability {
	return []contextengine.Capability{
		contextengine.CapBootstrap, contextengine.CapAssemble, contextengine.CapAfterTurn, contextengine.CapMaintain, contextengine.CapCompact,
	}
}

// Close aborts what runs in the background and waits for it, within ctx. The
// engine is the caller's to dispose of.
func (h *Host) Close(ctx context.Context) error { return h.background.close(ctx) }

// Turn is a turn that the model answered: what an engine has to learn of.
type Turn struct {
	Session contextengine.Session
	// ID is the turn's advancement key: however often the turn is committed, it
	// is stored once.
	ID string
	// History is what the gateway itself held before the turn, if it holds any.
	History []json.RawMessage
	// Messages are the user's, all that followed, and the model's last.
	Messages    []json.RawMessage
	IsHeartbeat bool
	TokenBudget int
	Usage       *contextengine.Usage
	// Provider, Model and ContextWindow describe what answered.
	Provider, Model string
	ContextWindow   int
}

// TurnRequest is a user's message and what the gateway knows about it.
type TurnRequest struct {
	// Session.SessionKey is required.
	Session contextengine.Session
	// ID names the turn; required, and never used for another message.
	ID string
	// Message is the user's message as it will be stored; required.
	Message json.RawMessage
	// Prompt is its text, a hint for engines that look for what fits.
	Prompt string
	// FirstTurn says that the session is new: there is nothing to bootstrap.
	FirstTurn bool
	// History is what the gateway holds of the session. It is handed to the
	// engine and used when the engine cannot answer. A gateway that leaves all
	// to the engine holds none.
	History     []json.RawMessage
	IsHeartbeat bool

	Model, System, CitationsMode string
	// TokenBudget is what history and turn may take of the model's window: the
	// window less the answer's reserve and the system prompt. 0 leaves it to
	// the engine and compacts on overflow only.
	TokenBudget int
	// ContextWindow is the model's whole window, for the engine's records.
	ContextWindow int
}

// TurnResult is an accepted turn.
type TurnResult struct {
	Turn
	// Answer is the last of Turn.Messages.
	Answer json.RawMessage
	// CommitErr is why the engine does not know of the turn yet. The turn
	// stands; give it to Host.Commit later, before the session's next turn.
	CommitErr error
	// ModelCalls and Compactions count what the turn took.
	ModelCalls, Compactions int
}

type noTools struct{}

func (noTools) Names() []string { return nil }

func (noTools) Call(_ context.Context, c ToolCall) (json.RawMessage, error) {
	return nil, errors.New("the host has no tool " + c.Name)
}
