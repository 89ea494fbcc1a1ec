package compact

import (
	"context"
	"fmt"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/events"
)

// ErrNotSmaller: the summaries would not make the window smaller.
var ErrNotSmaller = summarize.ErrNotSmaller

// StepError is the failure of one step. The window stays as it was.
type StepError struct {
	Step     int
	Attempts int
	Err      error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("summary %d of the plan, attempt %d: %v", e.Step, e.Attempts, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// PanicError is a summarizer that broke.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("the summarizer panicked: %v", e.Value) }

// SummaryText is an older summary.
type SummaryText struct {
	Seq       int64
	Text      string
	Tokens    int
	Covers    []events.Range
	Timestamp int64
	// Degraded: see Summary.
	Degraded bool
}

// Source reads what a plan covers. It is safe for concurrent use. Each call is
// for one step, so no more is held at a time than the steps that run.
type Source interface {
	// Messages answers with the messages of these seqs, in this order.
	Messages(ctx context.Context, seqs []int64) ([]SourceMessage, error)
	// SummaryTexts answers with the summaries of these seqs, in this order.
	SummaryTexts(ctx context.Context, seqs []int64) ([]SummaryText, error)
}

// RunInput is what Run needs.
type RunInput struct {
	Plan       Plan
	Source     Source
	Drafts     Drafts
	Summarizer summarize.Summarizer
	// Estimate is the uncalibrated tokens of a summary's message as shown, its
	// frame included. It is safe for concurrent use.
	Estimate     func(text string) int
	Instructions string
	Language     string
	// Parallel is how many steps run at once (default 2), Attempts how often a
	// step is tried (default 2).
	Parallel int
	Attempts int
	// StepTimeout bounds one call of the summarizer; 0 leaves it to the context.
	StepTimeout time.Duration
}

// Run writes the summaries of a plan. Steps that do not need each other run in
// parallel. It commits nothing: after an error the session is as it was, and
// what was finished is kept as drafts, so the next Run asks only for the rest.
//
// When ctx ends, Run returns at once, even where the summarizer does not: such
// a call is left behind until it comes back.
func Run(ctx context.Context, in RunInput) (Outcome, error) {
	if in.Parallel <= 0 {
		in.Parallel = 2
	}
	if in.Attempts <= 0 {
		in.Attempts = 2
	}
	r := &runner{RunInput: in, done: make(map[int]Summary, len(in.Plan.Steps))}
	last := 0
	for _, s := range in.Plan.Steps {
		last = max(last, s.stage)
	}
	for stage := 0; stage <= last; stage++ {
		if err := r.runStage(ctx, stage); err != nil {
			return Outcome{}, err
		}
	}
	return r.outcome()
}

// outcome puts the summaries together and holds them against the plan's promise.
func (r *runner) outcome() (Outcome, error) {
	p := r.Plan
	out := Outcome{
		Epoch: p.Epoch, Live: p.Live,
		TokensBefore: p.TokensBefore, TokensAfter: p.KeptTokens,
		Calls: r.calls, DraftErrors: r.draftErrors,
	}
	for _, s := range p.Steps {
		w := r.done[s.ID]
		out.Summaries = append(out.Summaries, w)
		if w.Reused {
			out.Reused++
		}
	}
	for _, n := range p.Live {
		if n.Step > 0 {
			out.TokensAfter += calibrate(r.done[n.Step].Tokens, p.FactorMilli)
		}
	}
	most := out.TokensBefore - 1
	if p.Redo {
		most = out.TokensBefore
	}
	if len(out.Summaries) == 0 || out.TokensAfter > most {
		return Outcome{}, fmt.Errorf("%w: %d of %d tokens", ErrNotSmaller, out.TokensAfter, out.TokensBefore)
	}
	return out, nil
}
