package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/compact/summarize/prompt"
	"github.com/engined/engined/internal/compact/summarize/redact"
)

// Price is what a million tokens cost, in US dollars; 0 for unknown.
type Price struct{ Input, Output float64 }

// Micros is the cost in millionths of a US dollar.
func (p Price) Micros(in, out int64) int64 { return int64(float64(in)*p.Input + float64(out)*p.Output) }

// tries is how often a model is asked: a second time with what was wrong.
const tries = 2

// Summarizer is a model as a summarize.Summarizer.
type Summarizer struct {
	ID     string
	Client Client
	Redact redact.Redactor
	Price  Price
	// Timeout bounds one question; 0 leaves it to the context.
	Timeout time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Name implements summarize.Summarizer: what the operator calls it.
func (s *Summarizer) Name() string { return s.ID }

// Version implements summarize.Summarizer.
func (s *Summarizer) Version() string {
	h := sha256.Sum256([]byte(s.Client.Parameters() + "\x00" + s.Redact.Version()))
	return prompt.Version + " " + s.Client.Model() + " " + hex.EncodeToString(h[:4])
}

// Summarize implements summarize.Summarizer. Its errors are *summarize.Failure,
// or the context's.
func (s *Summarizer) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	req = s.Redact.Request(req)
	demands := summarize.DemandsOf(req)
	p := prompt.Render(req, demands)
	var used summarize.Usage
	var fault error
	for range tries {
		reply, err := s.ask(ctx, p, req.Estimate, &used)
		if err != nil {
			return summarize.Result{}, s.failure(ctx, err, used)
		}
		var text string
		if text, fault = check(req, demands, p, reply); fault == nil {
			return summarize.Result{
				Text: text, Model: cmp.Or(reply.Model, s.Client.Model()), PromptVersion: prompt.Version, Usage: used,
			}, nil
		}
		if errors.Is(fault, ErrRefusal) {
			return summarize.Result{}, &summarize.Failure{Fault: summarize.FaultRefused, Usage: used, Err: fault}
		}
		if errors.Is(fault, ErrCut) {
			return summarize.Result{}, &summarize.Failure{Fault: summarize.FaultDown, Usage: used, Err: fault}
		}
		p = prompt.Render(req, demands).Corrected(faults(fault))
	}
	return summarize.Result{}, &summarize.Failure{Fault: summarize.FaultContent, Usage: used, Err: fault}
}

func (s *Summarizer) ask(ctx context.Context, p prompt.Prompt, estimate func(string) int, used *summarize.Usage) (Reply, error) {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	now := s.Now
	if now == nil {
		now = time.Now
	}
	began := now()
	reply, err := s.Client.Complete(ctx, Call{System: p.System, User: p.User, MaxTokens: p.MaxTokens})
	used.Calls++
	used.Took += now().Sub(began)
	in, out := tokens(p, reply, err, estimate)
	used.InputTokens += in
	used.OutputTokens += out
	used.CostMicros += s.Price.Micros(in, out)
	return reply, err
}

// tokens are those that a question took. Many servers tell of none, and nobody does
// whose answer broke off: our estimate stands in, or such a model would cost
// nothing and no limit would ever hold it back.
func tokens(p prompt.Prompt, r Reply, err error, estimate func(string) int) (in, out int64) {
	in, out = r.InputTokens, r.OutputTokens
	if err != nil && r.Model == "" && r.Text == "" {
		return in, out // it did not begin to answer
	}
	if in == 0 {
		in = int64(estimate(p.System) + estimate(p.User))
	}
	if out == 0 || err != nil {
		out = max(out, int64(estimate(r.Text)))
	}
	return in, out
}

// failure tells a failed question from a caller that left.
func (s *Summarizer) failure(ctx context.Context, err error, used summarize.Usage) error {
	f, ok := errors.AsType[*summarize.Failure](err)
	if !ok {
		f = &summarize.Failure{Fault: summarize.FaultDown, Err: err}
		if errors.Is(err, context.DeadlineExceeded) {
			f.Fault = summarize.FaultSlow
		}
	}
	out := *f
	out.Usage = used
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", cause, &out)
	}
	return &out
}

// check holds a reply to everything that a summary must be.
func check(req summarize.Request, d summarize.Demands, p prompt.Prompt, r Reply) (string, error) {
	switch r.Finish {
	case FinishStop:
	case FinishRefusal:
		return "", ErrRefusal
	case FinishLength:
		return "", ErrTruncated
	default:
		return "", ErrCut
	}
	text, ok := p.Unwrap(r.Text)
	if !ok {
		return "", ErrUnframed
	}
	if err := summarize.Accept(req, summarize.Result{Text: text}); err != nil {
		return "", err
	}
	if missing := d.Missing(text); len(missing) > 0 {
		return "", &summarize.QualityError{Missing: missing}
	}
	return text, nil
}

func faults(err error) []string {
	if q, ok := errors.AsType[*summarize.QualityError](err); ok {
		out := make([]string, len(q.Missing))
		for i, m := range q.Missing {
			out[i] = "it lacked " + m
		}
		return out
	}
	return []string{err.Error()}
}
