package contextengine

import "encoding/json"

// What a compaction aims for.
const (
	// TargetBudget: the next window fits TokenBudget. Sent on overflow.
	TargetBudget = "budget"
	// TargetThreshold: the session is under the engine's own threshold again.
	// Sent on a user's command. A delegating engine ignores the target.
	TargetThreshold = "threshold"
)

// CompactParams asks for a compaction now, within the call's deadline.
type CompactParams struct {
	Session
	Expectations
	SessionTarget   *SessionTarget   `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext  `json:"runtimeContext,omitempty"`
	// AgentID is the agent whose session this is.
	AgentID string `json:"agentId,omitempty"`
	// TokenBudget is what the next window has to fit, in tokens.
	TokenBudget *int `json:"tokenBudget,omitempty"`
	// Force compacts even under the threshold, whenever something older than
	// the tail can be summarized smaller.
	Force bool `json:"force,omitempty"`
	// CurrentTokenCount is the prompt size as the host observed it: from the
	// provider's overflow error, else an estimate.
	CurrentTokenCount *int `json:"currentTokenCount,omitempty"`
	// CompactionTarget is TargetBudget or TargetThreshold.
	CompactionTarget string `json:"compactionTarget,omitempty"`
	// CustomInstructions say what the summary should mind. They are a user's
	// words, not to be trusted.
	CustomInstructions string `json:"customInstructions,omitempty"`
	// DryRun answers with the plan and writes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// RotateSession asks for a successor: a new host session id, under the same
	// key, for what follows the compaction. The native runtime heeds it; others may.
	RotateSession bool `json:"rotateSession,omitempty"`
	// Runtime is the host's own compaction, for engines that delegate to it; see
	// DelegateCompaction. A host behind a network has none.
	Runtime CompactionRuntime `json:"-"`
}

// CompactResult answers Compact. Reasons of calls that did nothing are in the
// host's words: "nothing to compact", "already compacted", "already under
// target".
type CompactResult struct {
	OK        bool               `json:"ok"`
	Compacted bool               `json:"compacted"`
	Reason    string             `json:"reason,omitempty"`
	Result    *CompactionOutcome `json:"result,omitempty"`
	Epoch     int64              `json:"epoch"`
}

// CompactionOutcome describes a finished (or, on a dry run, a planned) compaction.
type CompactionOutcome struct {
	Summary string `json:"summary,omitempty"`
	// FirstKeptEntryID is the host's id of the oldest message that stays, else
	// its seq.
	FirstKeptEntryID string `json:"firstKeptEntryId,omitempty"`
	TokensBefore     int    `json:"tokensBefore"`
	TokensAfter      int    `json:"tokensAfter"`
	// SessionID is the successor's where the engine moved the conversation to
	// a new transcript. Only a result that is OK and Compacted has one.
	SessionID string `json:"sessionId,omitempty"`
	// SessionTarget is the successor in the host's own terms: the same agent,
	// key and store, and SessionID, which it repeats.
	SessionTarget *SessionTarget  `json:"sessionTarget,omitempty"`
	Details       json.RawMessage `json:"details,omitempty"`
}
