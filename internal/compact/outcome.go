package compact

import (
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/events"
)

// Summary is one written summary, as it is to be committed.
type Summary struct {
	// Step is the step of the plan that it fulfils.
	Step          int
	Level         int
	Text          string
	Sources       []events.Range
	Children      []Node
	Covers        []events.Range
	Tokens        int
	SourceTokens  int
	SourceHash    string
	Summarizer    string
	Model         string
	PromptVersion string
	// Timestamp of the newest source, in Unix milliseconds.
	Timestamp int64
	// Usage is what the text took to write, now or when its draft was made.
	Usage summarize.Usage
	// Degraded tells that a rule wrote it, or something under it, in a model's
	// place.
	Degraded bool
	// Reused tells that a draft was at hand.
	Reused bool
}

// Outcome is a finished compaction that waits for its commit.
type Outcome struct {
	Epoch int64
	// Summaries are in commit order: children before what is made of them.
	Summaries []Summary
	// Live is the whole live set afterwards, oldest first.
	Live         []Node
	TokensBefore int
	TokensAfter  int
	// Calls counts the summaries asked for, Reused those taken from drafts.
	Calls, Reused int
	// DraftErrors counts drafts that could not be read or kept. They cost a
	// repeated call at most.
	DraftErrors int
}

// Bodies are the summaries as events, in commit order. seqOf gives the seq that
// each step's summary will have.
func (o Outcome) Bodies(seqOf func(step int) int64) []events.SummaryBody {
	out := make([]events.SummaryBody, 0, len(o.Summaries))
	for _, s := range o.Summaries {
		out = append(out, events.SummaryBody{
			Text: s.Text, Level: s.Level,
			Sources: s.Sources, Children: seqs(s.Children, seqOf), Covers: s.Covers,
			Tokens: s.Tokens, SourceTokens: s.SourceTokens, SourceHash: s.SourceHash,
			Summarizer: s.Summarizer, Model: s.Model, PromptVersion: s.PromptVersion,
			Timestamp: s.Timestamp, Degraded: s.Degraded,
			InputTokens: s.Usage.InputTokens, OutputTokens: s.Usage.OutputTokens,
			CostMicros: s.Usage.CostMicros, TookMillis: s.Usage.Took.Milliseconds(),
		})
	}
	return out
}

// Degraded tells that a summary of it was written by rule in a model's place.
func (o Outcome) Degraded() bool {
	for _, s := range o.Summaries {
		if s.Degraded {
			return true
		}
	}
	return false
}

// LiveSeqs is the live set by seq, oldest first.
func (o Outcome) LiveSeqs(seqOf func(step int) int64) []int64 { return seqs(o.Live, seqOf) }

func seqs(nodes []Node, seqOf func(step int) int64) []int64 {
	var out []int64
	for _, n := range nodes {
		if n.Step > 0 {
			out = append(out, seqOf(n.Step))
		} else {
			out = append(out, n.Seq)
		}
	}
	return out
}
