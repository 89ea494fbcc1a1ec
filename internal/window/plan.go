package window

import (
	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
)

// Kind tells what an item of a window is.
type Kind uint8

// The kinds of items.
const (
	KindMessage Kind = iota
	KindSummary
	// KindNotice is the engine's own, and no event: its Seq is 0.
	KindNotice
)

// String is the kind's name in an explanation.
func (k Kind) String() string {
	switch k {
	case KindSummary:
		return "summary"
	case KindNotice:
		return "notice"
	case KindMessage:
	}
	return "message"
}

// Item is one message of the window.
type Item struct {
	Seq  int64
	Kind Kind
	// Tokens is the calibrated estimate of what is shown.
	Tokens int
	// CutTo is the uncalibrated number of tokens that the message or summary is cut
	// to; 0 shows it whole.
	CutTo int
	// Notice is set for the summary that names those which are not shown.
	Notice bool
	// Prune is set where the message is an old result: its middle is left out
	// (PruneTrim), or all of it (PruneClear).
	Prune PruneMode
	// WithoutResults shows only what a user said in a message that holds tool
	// results too, for the results have no call here. Tokens are then more than
	// what is shown.
	WithoutResults bool
	// Whole is the uncalibrated estimate of the message shown whole.
	Whole int
	// Reason tells why it is shown.
	Reason Reason
}

// LeftOut is one message or summary that the window does not show.
type LeftOut struct {
	Seq    int64
	Kind   Kind
	Reason Reason
	// Tokens is the calibrated estimate of the message shown whole.
	Tokens int
}

// Plan is a window before its bodies are read.
type Plan struct {
	Dialect message.Dialect
	Items   []Item
	// LeftOut lists what was given and is not shown: summaries, then messages
	// in log order.
	LeftOut []LeftOut
	// Summaries are those that are shown.
	Summaries []Summary
	// Tokens is the calibrated estimate of all items.
	Tokens int
	// TrimFrom is the seq at which the shown tail starts; 0 when nothing is
	// trimmed.
	TrimFrom int64
	// Fingerprint (hex) is equal for two plans of the same epoch only if the
	// items of the earlier one are a prefix of the later one's.
	Fingerprint string
	// EpochLabel is the epoch, with the trim step while one is in force and the
	// points up to which results are trimmed and cleared: "3", "3.t1200",
	// "3.p8192-4096".
	EpochLabel string
	// Over is set when what must be shown does not fit the budget.
	Over *contextengine.OverBudget
}
