package window

import (
	"github.com/engined/engined/internal/message"
)

// Entry is one message of the active path, as the log knows it.
type Entry struct {
	Seq int64
	message.Facts
	// Offset is the running total of Facts.Tokens along the path, this entry
	// included.
	Offset int64
	// By is the event whose shorter form is shown, which Facts.Tokens are those
	// of; 0 shows the message itself.
	By int64
}

// Summary is a live summary.
type Summary struct {
	// Seq is the summary's event.
	Seq int64
	// Tokens is the uncalibrated estimate of the rendered message.
	Tokens int
	// Level is 1 for a summary of messages, n+1 for a summary of level n.
	Level int
	// Timestamp is shown with the summary, in Unix milliseconds.
	Timestamp int64
	// TokensBefore is the size of what the summary replaces.
	TokensBefore int
}

// Params are what a window depends on beside the log.
type Params struct {
	// Budget is the number of calibrated tokens that the window may use.
	Budget int
	// FactorMilli calibrates token estimates, in thousandths; 0 means 1000. It
	// changes only with the epoch.
	FactorMilli int
	// Dialect is the session's: how summaries are written and which provider's
	// rules hold.
	Dialect message.Dialect
	// Prune says how old tool results are shown.
	Prune Pruning
	// PolicyHash names everything else that shapes the answer (estimator
	// version, prompt additions).
	PolicyHash string
}

// Input is what a window is built from.
type Input struct {
	Params
	Epoch int64
	// Summaries are the live summaries in window order, oldest first.
	Summaries []Summary
	// Entries are the messages of the active path that no live summary covers,
	// in log order. With Older they are the newest part of them.
	Entries []Entry
	// Older tells that there are older such messages that were not loaded; see
	// NeedMore.
	Older bool
}

// The borders keep sums of scaled charges inside an int64.
const (
	maxBudget = 1 << 40
	maxTokens = 1 << 28
)

func (p Params) budget() int64 { return min(max(int64(p.Budget), 1), maxBudget) }

func (p Params) factor() int64 {
	if p.FactorMilli <= 0 {
		return 1000
	}
	return int64(p.FactorMilli)
}

// calibrated is what a raw estimate costs in the window.
func (p Params) calibrated(tokens int) int64 {
	t := min(max(int64(tokens), 0), maxTokens)
	return min((t*p.factor()+999)/1000, maxTokens)
}
