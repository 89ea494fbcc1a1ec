package events

import "encoding/json"

// Range is a run of seqs, both ends included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Contains reports whether seq lies in the range.
func (r Range) Contains(seq int64) bool { return r.From <= seq && seq <= r.To }

// TurnCommittedBody marks the messages of one committed turn.
type TurnCommittedBody struct {
	AdvancementKey string `json:"advancementKey"`
	// Count is how many messages right before this event the turn holds.
	Count int `json:"count"`
	// Known are the turn's messages that a transcript had brought before.
	Known     []int64         `json:"known,omitempty"`
	Admission json.RawMessage `json:"admission,omitempty"`
	Terminal  json.RawMessage `json:"terminal,omitempty"`
}

// TurnCompletedBody is what the host reported when a turn ended. The newest
// TokenBudget is the session's default budget; Usage calibrates the estimator
// at the next epoch step.
type TurnCompletedBody struct {
	TokenBudget int    `json:"tokenBudget,omitempty"`
	Model       string `json:"model,omitempty"`
	// PromptTokens is the reported prompt size, EstimatedTokens what the
	// estimator said of the same prompt's history; both 0 when unknown.
	PromptTokens    int  `json:"promptTokens,omitempty"`
	EstimatedTokens int  `json:"estimatedTokens,omitempty"`
	IsHeartbeat     bool `json:"isHeartbeat,omitempty"`
}

// ModelTurns is how many turns' ends are looked at for a session's model: behind
// as many that name none it has none.
const ModelTurns = 8

// HostSessionBody says that a host session id now speaks for the session.
type HostSessionBody struct {
	Gateway       string `json:"gateway,omitempty"`
	HostSessionID string `json:"hostSessionId"`
	// Revision is the host's lifecycle revision, where it said one.
	Revision string `json:"revision,omitempty"`
}

// IdentityLinkedBody says what entries of a host's transcript are: which event
// each message is, and what the others hold. It is all that is needed to walk
// the transcript's tree.
type IdentityLinkedBody struct {
	Gateway       string        `json:"gateway,omitempty"`
	HostSessionID string        `json:"hostSessionId"`
	Entries       []LinkedEntry `json:"entries"`
}

// LinkedEntry is one entry of a host's transcript.
type LinkedEntry struct {
	ID string `json:"id"`
	// Parent is the entry before it in the host's tree, of a leaf move its
	// target.
	Parent string `json:"parent,omitempty"`
	// Type is the entry's kind in the host's own words.
	Type string `json:"type"`
	// Place is where the event stands that the entry is, a message or a reset. In
	// a session that inherited nothing it is the event's seq.
	Place int64 `json:"place,omitempty"`
	// Result is set for a message that answers tool calls.
	Result bool `json:"result,omitempty"`
	// Variant tells bodies apart that came under one id.
	Variant   string `json:"variant,omitempty"`
	FirstKept string `json:"firstKept,omitempty"`
	// Record is the text of an entry that is no message, as the host wrote it.
	Record string `json:"record,omitempty"`
}

// LeafMovedBody says where the active leaf went (rewind, branch switch).
type LeafMovedBody struct {
	To     int64  `json:"to"`
	Reason string `json:"reason,omitempty"`
	// Path is the whole path that is shown from then on, as ranges of places,
	// where it is not that of To: other gateways' messages may lie beside it.
	Path []Range `json:"path,omitempty"`
}

// SessionResetBody hides everything before Floor. KeepFrom is 0 when nothing
// is kept.
type SessionResetBody struct {
	KeepFrom      int64  `json:"keepFrom,omitempty"`
	Reason        string `json:"reason,omitempty"`
	HostSessionID string `json:"hostSessionId,omitempty"`
	// Path is all that is kept, as ranges of places, where a transcript said what.
	Path []Range `json:"path,omitempty"`
}

// SummaryBody is one summary. Its id is the seq of its event.
type SummaryBody struct {
	Text string `json:"text"`
	// Level is 1 for a summary of messages, n+1 for a summary of level n.
	Level int `json:"level"`
	// Sources are the message ranges, Children the summaries it covers
	// directly; one of the two is set.
	Sources  []Range `json:"sources,omitempty"`
	Children []int64 `json:"children,omitempty"`
	// Covers is all message seqs under it, as ranges.
	Covers []Range `json:"covers"`
	// CoveredTokens is the raw estimate of all messages under it.
	CoveredTokens int64 `json:"coveredTokens"`
	// Tokens is the estimate of the summary's rendered message, SourceTokens
	// of what it replaces.
	Tokens       int `json:"tokens"`
	SourceTokens int `json:"sourceTokens"`
	// Summarizer, Model and PromptVersion say how it was made, SourceHash
	// (hex) from what.
	Summarizer    string `json:"summarizer"`
	Model         string `json:"model,omitempty"`
	PromptVersion string `json:"promptVersion,omitempty"`
	SourceHash    string `json:"sourceHash"`
	// Timestamp of the newest source, in Unix milliseconds; stable.
	Timestamp int64 `json:"timestamp,omitempty"`
	// Degraded tells that a rule wrote it, or something under it, because no model
	// did. Such summaries are written anew when a model answers again.
	Degraded bool `json:"degraded,omitempty"`
	// InputTokens and OutputTokens are what the provider counted, CostMicros the
	// cost in millionths of a US dollar, TookMillis the time of the calls.
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	CostMicros   int64 `json:"costMicros,omitempty"`
	TookMillis   int64 `json:"tookMillis,omitempty"`
}

// Cause tells why an epoch began.
type Cause string

// The causes of an epoch.
const (
	CauseCompaction Cause = "compaction"
	CauseUndo       Cause = "undo"
	CauseReset      Cause = "reset"
	CauseRewind     Cause = "rewind"
	CauseRewrite    Cause = "rewrite"
)

// EpochRotatedBody starts an epoch. It carries the complete set of live
// summaries, so a reader needs nothing older.
type EpochRotatedBody struct {
	Base  int64 `json:"base"`
	Epoch int64 `json:"epoch"`
	Cause Cause `json:"cause"`
	// Live are the seqs of the summaries that stand in the window, oldest first.
	Live []int64 `json:"live"`
	// FactorMilli calibrates the token estimate for this epoch, in thousandths.
	FactorMilli  int     `json:"factorMilli"`
	TokensBefore int     `json:"tokensBefore,omitempty"`
	TokensAfter  int     `json:"tokensAfter,omitempty"`
	Retired      []int64 `json:"retired,omitempty"`
}
