package contextengine

import "context"

// SubagentSpawner readies a child session before its agent starts.
type SubagentSpawner interface {
	// PrepareSubagentSpawn returns nil where there is nothing to prepare. An
	// error keeps the child from starting.
	PrepareSubagentSpawn(ctx context.Context, p PrepareSubagentSpawnParams) (*SubagentPreparation, error)
}

// SubagentEnder hears that a child session ended.
type SubagentEnder interface {
	// OnSubagentEnded may be called for a child that nobody prepared, and more
	// than once.
	OnSubagentEnded(ctx context.Context, p SubagentEndedParams) (SubagentEndedResult, error)
}

// SubagentHost follows child sessions from their start to their end.
type SubagentHost interface {
	SubagentSpawner
	SubagentEnder
}

// ContextMode is what a child sees when it starts.
type ContextMode string

// The two modes. ContextIsolated is meant where none is said.
const (
	// ContextIsolated: nothing.
	ContextIsolated ContextMode = "isolated"
	// ContextFork: the parent's window at that point, without the parent's
	// open call.
	ContextFork ContextMode = "fork"
)

// PrepareSubagentSpawnParams announces a child. The session is the parent's.
type PrepareSubagentSpawnParams struct {
	Session
	// ChildSessionKey is where the child's turns will come; nothing lives
	// there yet.
	ChildSessionKey string      `json:"childSessionKey"`
	ContextMode     ContextMode `json:"contextMode,omitempty"`
	ChildSessionID  string      `json:"childSessionId,omitempty"`
	// TTLMs is how long the child may take to begin, in milliseconds; absent
	// or 0 is the engine's own limit. What never began is removed then.
	TTLMs int64 `json:"ttlMs,omitempty"`
}

// SubagentPreparation is what was readied for a child. The host rolls it back
// at most once, when the child does not start after all.
type SubagentPreparation struct {
	PreparationID string `json:"preparationId"`
	// Rollback leaves nothing of the preparation; nil where there is nothing
	// to undo.
	Rollback func(ctx context.Context) error `json:"-"`
}

// SubagentEndReason is why a child ended.
type SubagentEndReason string

// The four reasons.
const (
	// SubagentDeleted: the child was deleted with its session.
	SubagentDeleted SubagentEndReason = "deleted"
	// SubagentCompleted: the child finished.
	SubagentCompleted SubagentEndReason = "completed"
	// SubagentSwept: the host gave the child up for lost.
	SubagentSwept SubagentEndReason = "swept"
	// SubagentReleased: the host no longer follows the child, which may go on.
	SubagentReleased SubagentEndReason = "released"
)

// Known tells whether the reason is one of the four.
func (r SubagentEndReason) Known() bool {
	switch r {
	case SubagentDeleted, SubagentCompleted, SubagentSwept, SubagentReleased:
		return true
	}
	return false
}

// SubagentEndedParams tells of a child's end. The session is the parent's, or
// the child itself.
type SubagentEndedParams struct {
	Session
	ChildSessionKey string            `json:"childSessionKey"`
	Reason          SubagentEndReason `json:"reason"`
}

// SubagentEndedResult is false for a child that the engine does not know.
type SubagentEndedResult struct {
	Ended bool `json:"ended"`
}
