package engine

import (
	"context"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// LosslessID and LegacyID are the ids of the built-in engines. LegacyID is the
// host's default and belongs to core.
const (
	LosslessID = "lossless"
	LegacyID   = "legacy"
)

// Lossless is the engine that owns compaction.
type Lossless struct {
	cfg       Config
	writer    *writer
	windows   *windows
	Compactor *Compactor
	answers   *answers
}

var _ interface {
	contextengine.Engine
	contextengine.Bootstrapper
	contextengine.BatchIngester
	contextengine.TurnCommitter
	contextengine.AfterTurner
	contextengine.Maintainer
	contextengine.SubagentHost
	contextengine.Disposer
	Stepper
	Brancher
} = (*Lossless)(nil)

// NewLossless makes the engine. Dispose ends it.
func NewLossless(cfg Config) *Lossless {
	cfg = cfg.withDefaults()
	w := newWindows(cfg)
	return &Lossless{
		cfg:       cfg,
		writer:    &writer{cfg: cfg, owes: true},
		windows:   w,
		Compactor: newCompactor(cfg, tree(cfg)),
		answers:   newAnswers(cfg),
	}
}

// Info describes the engine.
func (l *Lossless) Info() contextengine.Info {
	info := contextengine.Info{
		ID: LosslessID, Name: "engined lossless", Version: "1", OwnsCompaction: true, TranscriptSemantics: durable(),
	}
	if l.cfg.Rewriting.On {
		info.TurnMaintenanceMode = contextengine.BackgroundMaintenance
	}
	return info
}

// durable is what the log gives: a turn is one append, known by its key, and a
// window shows what was stored before the current turn.
func durable() *contextengine.TranscriptSemantics {
	return &contextengine.TranscriptSemantics{
		CurrentTurnFence:           contextengine.FenceBeforeCurrentTurn,
		TurnAdvancementIdempotency: contextengine.AtomicIdempotentTurns,
	}
}

// Ingest stores one message.
func (l *Lossless) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.IngestResult{}, err
	}
	return l.writer.ingest(ctx, p)
}

// IngestBatch stores several messages, all or none.
func (l *Lossless) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.IngestBatchResult{}, err
	}
	return l.writer.ingestBatch(ctx, p)
}

// CommitTurn stores an accepted turn once.
func (l *Lossless) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	return l.writer.commitTurn(ctx, p)
}

// AfterTurn stores what a turn added and, past the threshold, sets a
// compaction in motion.
func (l *Lossless) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.AfterTurnResult{}, err
	}
	return l.writer.afterTurn(ctx, p)
}

// Bootstrap takes over the part of the host's history that is not stored yet.
func (l *Lossless) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.BootstrapResult{}, err
	}
	return l.writer.bootstrap(ctx, p)
}

// Maintain replaces old tool results in the window by shorter forms, where that is
// wanted. Nothing else needs it: what a compaction leaves behind goes with its
// commit, which has just made the window smaller too.
func (l *Lossless) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.MaintainResult{}, err
	}
	nothing := contextengine.MaintainResult{Reason: reasonNothingToMaintain}
	switch {
	case p.Reason == contextengine.MaintainAfterBootstrap, p.Reason == contextengine.MaintainAfterCompaction:
		return nothing, nil
	case l.cfg.Rewriting.On:
		return l.rewrite(ctx, p.Session)
	case p.Reason == contextengine.MaintainAfterTurn:
		return nothing, nil // without a look: it comes with every turn
	}
	if _, err := l.cfg.Log.Session(ctx, p.Tenant, p.SessionKey); err != nil {
		return unknownIsFine(contextengine.MaintainResult{Reason: "unknown session"}, err)
	}
	return nothing, nil
}

// Assemble projects the log into a window.
func (l *Lossless) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.AssembleResult{}, err
	}
	res, rec, err := l.windows.assemble(ctx, p)
	if err == nil && rec != nil {
		l.answers.add(*rec)
	}
	return res, err
}

// Compact makes the next window smaller, within the context's deadline.
func (l *Lossless) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	if err := checkSession(p.Session); err != nil {
		return contextengine.CompactResult{}, err
	}
	return l.Compactor.Compact(ctx, p)
}

// Owed compacts what a session owes, within the context's deadline.
func (l *Lossless) Owed(ctx context.Context, s store.Session, d store.Debt) (contextengine.CompactResult, error) {
	return l.Compactor.Owed(ctx, s, d)
}

// Redo writes degraded summaries anew, within the context's deadline.
func (l *Lossless) Redo(ctx context.Context, s store.Session) (bool, error) {
	return l.Compactor.Redo(ctx, s)
}

// Dispose writes what waits to be recorded.
func (l *Lossless) Dispose(ctx context.Context) error { return l.answers.close(ctx) }
