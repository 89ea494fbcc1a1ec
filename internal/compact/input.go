package compact

import (
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/window"
)

// Entry is one message of the active path, by its facts. Its Offset is not used.
type Entry = window.Entry

// SummaryRef is one summary that stands in the window.
type SummaryRef struct {
	Seq   int64
	Level int
	// Tokens is the uncalibrated estimate of its message as shown.
	Tokens       int
	SourceTokens int
	Covers       []events.Range
}

// PlanInput is all that a plan depends on.
type PlanInput struct {
	Epoch int64
	// Entries are the messages of the path that no live summary covers, in log
	// order; Live the live summaries, oldest first.
	Entries []Entry
	Live    []SummaryRef
	Policy  Policy
	// Budget is the session's token budget, Target what the window must be within
	// afterwards (0: the budget). Both are calibrated tokens, net of whatever the
	// window shows beside messages.
	Budget int
	Target int
	// Ahead is what is expected to be said before the plan is made in earnest, for
	// one that is made early: the tail leaves that much of its goal free.
	Ahead int
	// Force compacts whenever something older than the tail can be made smaller.
	Force bool
	// FactorMilli calibrates the estimate, in thousandths; 0 is 1000.
	FactorMilli int
	// CompactedAt is the seq of the event that committed the last compaction, 0 if
	// there was none. A forced call with nothing newer has nothing to do.
	CompactedAt int64
}

// Stop is why there is no plan, in the host's words; "" means that there is one.
type Stop string

// The reasons to do nothing.
const (
	StopNothing     Stop = "nothing to compact"
	StopCompacted   Stop = "already compacted"
	StopUnderTarget Stop = "already under target"
)

// Node names a summary: a step of the plan, or a summary of the log.
type Node struct {
	// Step is the id of a step, 0 for a summary of the log.
	Step int   `json:"step,omitempty"`
	Seq  int64 `json:"seq,omitempty"`
}

// Step is one summary to write. Its source is either messages or other
// summaries. Token counts are uncalibrated, as an estimator gives them.
type Step struct {
	// ID counts from 1. A step's children have lower ids.
	ID    int `json:"id"`
	Level int `json:"level"`
	// SourceSeqs are the messages it covers directly, ascending; Sources the same
	// as ranges that hold nothing else.
	SourceSeqs []int64        `json:"-"`
	Sources    []events.Range `json:"sources,omitempty"`
	Children   []Node         `json:"children,omitempty"`
	// Covers is every message under it.
	Covers []events.Range `json:"covers"`
	// SourceTokens is what its source takes in the window now (for children that
	// are yet to be written: at most), MaxTokens what its message may take.
	SourceTokens int `json:"sourceTokens"`
	MaxTokens    int `json:"maxTokens"`
	// Replaces is the summary of the log that a redo writes anew with it.
	Replaces int64 `json:"replaces,omitempty"`
	// stage is 0 for a step that needs no other one, else one more than the
	// highest stage among its children.
	stage int
}

// Plan is a compaction to run. Steps are in commit order; those that do not
// depend on each other may run in parallel.
type Plan struct {
	Epoch int64  `json:"epoch"`
	Steps []Step `json:"steps"`
	// KeepLive are the live summaries that stay live, Live the whole live set
	// afterwards, oldest first.
	KeepLive []int64 `json:"keepLive,omitempty"`
	Live     []Node  `json:"live"`
	// FirstKept is the oldest message that stays verbatim, TailFrom the first of
	// the unbroken tail. They differ when a turn is split: its user message stays
	// and its older tool groups are covered.
	FirstKept int64 `json:"firstKept"`
	TailFrom  int64 `json:"tailFrom"`
	// TokensBefore is the window with large results cut and nothing trimmed,
	// TokensAfterMax the most it takes afterwards. Both are calibrated.
	TokensBefore   int `json:"tokensBefore"`
	TokensAfterMax int `json:"tokensAfterMax"`
	// KeptTokens is what stays as it is: messages and live summaries, calibrated.
	KeptTokens  int `json:"-"`
	FactorMilli int `json:"-"`
	// Redo tells that the plan writes summaries anew: it need not make the window
	// smaller, only not larger.
	Redo bool `json:"redo,omitempty"`
}
