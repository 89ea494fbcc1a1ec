package prefix

import (
	"bytes"
	"encoding/json"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/tokens"
)

// Window is what one model call sees.
type Window struct {
	// Seq is the newest event that the window knows of.
	Seq int64
	// Epoch and Fingerprint are its projection's.
	Epoch       string
	Fingerprint string
	// Addition stands before the messages.
	Addition string
	Messages []json.RawMessage
}

// Call is what one window had in common with the one before.
type Call struct {
	Seq         int64  `json:"seq"`
	Epoch       string `json:"epoch"`
	Messages    int    `json:"messages"`
	Bytes       int    `json:"bytes"`
	Tokens      int    `json:"tokens"`
	ReusedBytes int    `json:"reusedBytes"`
	// ReusedTokens are those of the whole messages that both begin with.
	ReusedTokens int `json:"reusedTokens"`
	// Rebilled are the tokens of the window before that this one does not begin
	// with: a cache held them in vain.
	Rebilled int `json:"rebilledTokens"`
	// Break says why the prefix changed; "" where the window only grew.
	Break string `json:"break,omitempty"`
}

// The reasons of a break.
const (
	// BreakEpoch is a new epoch: a compaction, a reset, a rewind.
	BreakEpoch = "epoch"
	// BreakTrim is a new trim step within an epoch.
	BreakTrim = "trim"
	// BreakOther is a change within one epoch and trim step: a heartbeat that
	// left, a late result that moved to its call, an answer over the budget.
	BreakOther = "other"
)

// Totals add up calls.
type Totals struct {
	Calls        int   `json:"calls"`
	Bytes        int64 `json:"bytes"`
	Tokens       int64 `json:"tokens"`
	ReusedBytes  int64 `json:"reusedBytes"`
	ReusedTokens int64 `json:"reusedTokens"`
	Rebilled     int64 `json:"rebilledTokens"`
	MaxTokens    int   `json:"maxTokens"`
	// Breaks counts calls by the reason of their break.
	Breaks map[string]int `json:"breaks"`
}

// Fresh are the tokens that no cache could answer.
func (t Totals) Fresh() int64 { return t.Tokens - t.ReusedTokens }

// Share is the part of all bytes that was reused, between 0 and 1.
func (t Totals) Share() float64 {
	if t.Bytes == 0 {
		return 0
	}
	return float64(t.ReusedBytes) / float64(t.Bytes)
}

// Ledger adds up the windows of one session in the order of their calls. The
// zero value is ready.
type Ledger struct {
	totals Totals
	last   *Window
	// costs are the tokens of the last window's messages.
	costs []int
}

// Add accounts for the next call.
func (l *Ledger) Add(w Window) Call {
	c := Call{Seq: w.Seq, Epoch: w.Epoch, Messages: len(w.Messages), Bytes: len(w.Addition), Tokens: tokens.Text(w.Addition)}
	same := l.last != nil && l.last.Addition == w.Addition
	if same {
		c.ReusedBytes, c.ReusedTokens = c.Bytes, c.Tokens
	}
	common := 0
	costs := make([]int, len(w.Messages))
	for i, m := range w.Messages {
		same = same && i < len(l.last.Messages) && bytes.Equal(m, l.last.Messages[i])
		if same {
			costs[i] = l.costs[i]
			common++
			c.ReusedBytes += len(m)
			c.ReusedTokens += costs[i]
		} else {
			costs[i] = cost(m)
		}
		c.Bytes += len(m)
		c.Tokens += costs[i]
	}
	if l.last != nil && (common < len(l.last.Messages) || l.last.Addition != w.Addition) {
		for _, n := range l.costs[common:] {
			c.Rebilled += n
		}
		c.Break = why(l.last, &w)
	}
	l.add(c)
	l.last, l.costs = &w, costs
	return c
}

// Totals are those of all calls so far.
func (l *Ledger) Totals() Totals { return l.totals }

func (l *Ledger) add(c Call) {
	t := &l.totals
	t.Calls++
	t.Bytes += int64(c.Bytes)
	t.Tokens += int64(c.Tokens)
	t.ReusedBytes += int64(c.ReusedBytes)
	t.ReusedTokens += int64(c.ReusedTokens)
	t.Rebilled += int64(c.Rebilled)
	t.MaxTokens = max(t.MaxTokens, c.Tokens)
	if t.Breaks == nil {
		t.Breaks = make(map[string]int)
	}
	if c.Break != "" {
		t.Breaks[c.Break]++
	}
}

// why reads the reason off the epochs' labels: a number, with the trim step
// behind it while one is in force.
func why(a, b *Window) string {
	switch {
	case number(a.Epoch) != number(b.Epoch):
		return BreakEpoch
	case a.Epoch != b.Epoch:
		return BreakTrim
	default:
		return BreakOther
	}
}

func number(epoch string) string {
	for i := range len(epoch) {
		if epoch[i] < '0' || epoch[i] > '9' {
			return epoch[:i]
		}
	}
	return epoch
}

func cost(raw []byte) int {
	m, err := message.Read(raw)
	if err != nil {
		return tokens.Text(string(raw))
	}
	return tokens.Message(m)
}
