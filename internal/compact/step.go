package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/events"
)

// draftTimeout bounds the keeping of a finished draft, which goes on when the
// caller has given up: the text is paid for.
const draftTimeout = 5 * time.Second

// runner is one Run.
type runner struct {
	RunInput

	mu          sync.Mutex
	done        map[int]Summary
	calls       int
	draftErrors int
}

// runStage runs the steps of one stage. After a failure no further step starts,
// but those under way may finish and leave their drafts.
func (r *runner) runStage(ctx context.Context, stage int) error {
	steps := make(chan *Step)
	failed := make(chan struct{})
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for range r.Parallel {
		wg.Go(func() {
			for s := range steps {
				w, err := r.runStep(ctx, s)
				if err != nil {
					once.Do(func() { first = err; close(failed) })
					return
				}
				r.mu.Lock()
				r.done[s.ID] = w
				r.mu.Unlock()
			}
		})
	}
feed:
	for i := range r.Plan.Steps {
		s := &r.Plan.Steps[i]
		if s.stage != stage {
			continue
		}
		select {
		case steps <- s:
		case <-failed:
			break feed
		}
	}
	close(steps)
	wg.Wait()
	return first
}

// runStep reads one step's source and gets its summary.
func (r *runner) runStep(ctx context.Context, s *Step) (Summary, error) {
	if err := ctx.Err(); err != nil {
		return Summary{}, context.Cause(ctx)
	}
	out := Summary{
		Step: s.ID, Level: s.Level, Sources: s.Sources, Children: s.Children, Covers: s.Covers,
		SourceTokens: s.SourceTokens,
	}
	req := summarize.Request{
		Level: s.Level, MaxTokens: s.MaxTokens, SourceTokens: s.SourceTokens,
		Instructions: r.Instructions, Language: r.Language, Estimate: r.Estimate,
	}
	var err error
	if len(s.Children) > 0 {
		err = r.readChildren(ctx, s, &req, &out)
	} else {
		err = r.readMessages(ctx, s, &req, &out)
	}
	if err != nil {
		return Summary{}, err
	}
	d, reused, err := r.write(ctx, s, req)
	if err != nil {
		return Summary{}, err
	}
	out.Text, out.Tokens, out.Reused, out.Usage = d.Text, r.Estimate(d.Text), reused, d.Usage
	out.Degraded = out.Degraded || d.degraded
	out.Summarizer, out.Model, out.PromptVersion = d.Summarizer, d.Model, d.PromptVersion
	return out, nil
}

func (r *runner) readMessages(ctx context.Context, s *Step, req *summarize.Request, out *Summary) error {
	msgs, err := r.Source.Messages(ctx, s.SourceSeqs)
	if err != nil {
		return fmt.Errorf("read the sources of summary %d: %w", s.ID, err)
	}
	if len(msgs) != len(s.SourceSeqs) {
		return fmt.Errorf("read the sources of summary %d: %d of %d messages", s.ID, len(msgs), len(s.SourceSeqs))
	}
	// Of the newest message, not the latest time: hosts' clocks differ, and what
	// was imported was recorded long after it was said.
	if n := len(msgs); n > 0 {
		out.Timestamp = max(msgs[n-1].time().UnixMilli(), 0)
	}
	out.SourceHash = sourceHash(msgs)
	req.Lines = linesOf(msgs)
	return nil
}

// readChildren takes children from this run or from the log. They may have come
// out smaller than planned, so the bound follows them.
func (r *runner) readChildren(ctx context.Context, s *Step, req *summarize.Request, out *Summary) error {
	var old []int64
	for _, c := range s.Children {
		if c.Step == 0 {
			old = append(old, c.Seq)
		}
	}
	known := map[int64]SummaryText{}
	if len(old) > 0 {
		texts, err := r.Source.SummaryTexts(ctx, old)
		if err != nil {
			return fmt.Errorf("read the summaries under summary %d: %w", s.ID, err)
		}
		for _, t := range texts {
			known[t.Seq] = t
		}
	}
	tokens := 0
	for _, c := range s.Children {
		t, ok := known[c.Seq]
		if c.Step > 0 {
			r.mu.Lock()
			w := r.done[c.Step]
			r.mu.Unlock()
			t, ok = SummaryText{Text: w.Text, Tokens: w.Tokens, Covers: w.Covers, Timestamp: w.Timestamp, Degraded: w.Degraded}, true
		}
		if !ok {
			return fmt.Errorf("read the summaries under summary %d: %d is missing", s.ID, c.Seq)
		}
		from, to := bounds(t.Covers)
		req.Children = append(req.Children, summarize.Child{Seq: c.Seq, From: from, To: to, Text: t.Text})
		tokens += t.Tokens
		out.Degraded = out.Degraded || t.Degraded
		out.Timestamp = max(out.Timestamp, t.Timestamp)
	}
	req.SourceTokens = tokens
	req.MaxTokens = min(req.MaxTokens, tokens*4/5)
	out.SourceTokens = tokens
	out.SourceHash = childrenHash(req.Children)
	return nil
}

func bounds(rs []events.Range) (from, to int64) {
	for i, r := range rs {
		if i == 0 {
			from = r.From
		}
		to = max(to, r.To)
	}
	return from, to
}

// write answers with a draft that is at hand, or asks for a new text.
func (r *runner) write(ctx context.Context, s *Step, req summarize.Request) (Draft, bool, error) {
	key, err := draftKey(r.Summarizer, req)
	if err != nil {
		return Draft{}, false, fmt.Errorf("key of summary %d: %w", s.ID, err)
	}
	d, ok, err := r.Drafts.Get(ctx, key)
	if err != nil {
		r.count(&r.draftErrors)
	}
	// A draft is held to the same rules as a new text.
	if err == nil && ok && summarize.Accept(req, summarize.Result{Text: d.Text}) == nil {
		return d, true, nil
	}
	var spent summarize.Usage
	for attempt := 1; ; attempt++ {
		r.count(&r.calls)
		res, err := r.ask(ctx, req)
		if err == nil {
			err = summarize.Accept(req, res)
		}
		if err == nil {
			d := Draft{
				Text: res.Text, Summarizer: cmp.Or(res.Summarizer, r.Summarizer.Name()), Model: res.Model,
				PromptVersion: res.PromptVersion, Usage: res.Usage.Plus(spent), degraded: res.Degraded,
			}
			// What a rule wrote costs nothing to write again, and a model may be
			// back by then.
			if !d.degraded {
				r.keep(ctx, key, d)
			}
			return d, false, nil
		}
		if ctx.Err() != nil {
			return Draft{}, false, context.Cause(ctx)
		}
		if f, ok := errors.AsType[*summarize.Failure](err); ok {
			spent = spent.Plus(f.Usage)
		}
		if attempt >= r.Attempts || final(err) {
			return Draft{}, false, &StepError{Step: s.ID, Attempts: attempt, Err: err}
		}
	}
}

// final tells that asking again at once is of no use: the summarizer has tried
// what there is to try.
func final(err error) bool {
	var f interface{ Final() bool }
	return errors.As(err, &f) && f.Final()
}

func (r *runner) keep(ctx context.Context, key string, d Draft) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
	defer cancel()
	if err := r.Drafts.Put(ctx, key, d); err != nil {
		r.count(&r.draftErrors)
	}
}

// ask calls the summarizer, which may hang or panic.
func (r *runner) ask(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	if r.StepTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.StepTimeout)
		defer cancel()
	}
	type answer struct {
		res summarize.Result
		err error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &PanicError{Value: v}}
			}
			got <- a
		}()
		a.res, a.err = r.Summarizer.Summarize(ctx, req)
	}()
	select {
	case a := <-got:
		return a.res, a.err
	case <-ctx.Done():
	}
	// A text that came with the last breath is still good for a draft.
	select {
	case a := <-got:
		return a.res, a.err
	default:
		return summarize.Result{}, context.Cause(ctx)
	}
}

func (r *runner) count(n *int) {
	r.mu.Lock()
	*n++
	r.mu.Unlock()
}
