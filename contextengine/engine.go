package contextengine

import "context"

// Engine is what every context engine implements.
//
// Calls honour the context's deadline and cancellation, which is the host's
// abort signal, and may come at the same time, also for one session. They do
// not change what they are given. An error means that nothing was changed,
// except where a method says otherwise. An error that is neither of this
// package's nor the context's says that the engine is broken: its host sets it
// aside.
type Engine interface {
	// Info describes the engine. It is constant for the life of the engine.
	Info() Info
	// Ingest stores one message at the end of its session.
	Ingest(ctx context.Context, p IngestParams) (IngestResult, error)
	// Assemble answers with the ordered messages for the next model call,
	// within p.TokenBudget, or says in AssembleResult.OverBudget what did not
	// fit. It stores nothing.
	Assemble(ctx context.Context, p AssembleParams) (AssembleResult, error)
	// Compact makes the session's next window smaller. Having nothing to do is
	// a result (OK, not Compacted, with a Reason), not an error.
	Compact(ctx context.Context, p CompactParams) (CompactResult, error)
}

// The interfaces below are optional. A host does without a method that is not
// there, or that answers errors.ErrUnsupported, as an engine does that stands
// for another.

// Bootstrapper takes over the history that a host already holds of a session.
type Bootstrapper interface {
	Bootstrap(ctx context.Context, p BootstrapParams) (BootstrapResult, error)
}

// BatchIngester stores several messages at once: all or none.
type BatchIngester interface {
	IngestBatch(ctx context.Context, p IngestBatchParams) (IngestBatchResult, error)
}

// TurnCommitter stores one accepted turn atomically and at most once per
// advancement key (the host's "atomic-idempotent-v1" semantics).
type TurnCommitter interface {
	CommitTurn(ctx context.Context, p CommitTurnParams) (CommitTurnResult, error)
}

// AfterTurner stores the messages that a turn added and hears that it ended.
type AfterTurner interface {
	AfterTurn(ctx context.Context, p AfterTurnParams) (AfterTurnResult, error)
}

// Maintainer does housekeeping after a bootstrap, a turn or a compaction.
type Maintainer interface {
	Maintain(ctx context.Context, p MaintainParams) (MaintainResult, error)
}

// Disposer releases what one engine instance holds.
type Disposer interface {
	Dispose(ctx context.Context) error
}
