package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/prefix"
)

// Engine is what a session is replayed on.
type Engine interface {
	IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error)
	AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error)
	Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error)
	Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error)
	Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, reason string) (contextengine.StepResult, error)
	Rewind(ctx context.Context, s contextengine.Session, toSeq int64) (contextengine.StepResult, error)
}

// Options say how a recording is run.
type Options struct {
	// Session is empty at first and the run's own.
	Session contextengine.Session
	// Budget is that of all windows, in tokens.
	Budget int
	// Model names the model for which tokens are counted; it may be empty.
	Model string
	// Progress, where set, hears how many steps are done.
	Progress func(done int)
}

// Result is what a policy made of the session.
type Result struct {
	prefix.Totals
	// Fresh are the tokens that no prompt cache could answer.
	FreshTokens int64   `json:"freshTokens"`
	ReusedShare float64 `json:"reusedShare"`
	// OverBudget counts calls whose smallest valid window was too large.
	OverBudget int `json:"overBudget"`
	// LeftOut adds up, over all calls, the messages neither shown nor
	// summarized; MaxLeftOut is the most in one call.
	LeftOut    int64 `json:"leftOut"`
	MaxLeftOut int   `json:"maxLeftOut"`

	Compactions int `json:"compactions"`
	// SummaryCalls are the texts that were summarized, drafts not counted twice.
	SummaryCalls int `json:"summaryCalls"`
	// At the end: the messages of the path that the window shows, that summaries
	// cover, and that are neither.
	Shown      int `json:"shown"`
	Summaries  int `json:"summaries"`
	LastLeft   int `json:"leftOutAtTheEnd"`
	LastTokens int `json:"tokensAtTheEnd"`
}

// Run replays the steps and adds up what the windows cost.
func Run(ctx context.Context, e Engine, steps []Step, o Options) (Result, error) {
	r := run{e: e, o: o}
	for i, s := range steps {
		if err := r.step(ctx, s); err != nil {
			return Result{}, fmt.Errorf("event %d: %w", s.Seq, err)
		}
		if o.Progress != nil {
			o.Progress(i + 1)
		}
	}
	return r.end(ctx)
}

type run struct {
	e      Engine
	o      Options
	ledger prefix.Ledger
	res    Result
	// put are the messages so far, in order.
	put []message
}

// message is a seq of the recording and the run's for it.
type message struct{ of, seq int64 }

func (r *run) step(ctx context.Context, s Step) error {
	switch s.Kind {
	case Message:
		if s.Reply {
			if err := r.call(ctx); err != nil {
				return err
			}
		}
		return r.append(ctx, s)
	case TurnEnd:
		return r.turn(ctx)
	case Reset:
		var keep *int64
		if i := r.from(s.Target); s.Target > 0 && i < len(r.put) {
			keep = &r.put[i].seq
		}
		_, err := r.e.Reset(ctx, r.o.Session, keep, "replay")
		return err
	case Rewind:
		i := r.from(s.Target + 1)
		if i == 0 { // to before the first message: nothing is shown
			_, err := r.e.Reset(ctx, r.o.Session, nil, "replay")
			return err
		}
		_, err := r.e.Rewind(ctx, r.o.Session, r.put[i-1].seq)
		return err
	default:
		return fmt.Errorf("step of kind %d", s.Kind)
	}
}

func (r *run) append(ctx context.Context, s Step) error {
	res, err := r.e.IngestBatch(ctx, contextengine.IngestBatchParams{
		Session: r.o.Session, Messages: []json.RawMessage{s.Message}, IsHeartbeat: s.Heartbeat,
	})
	if err == nil && len(res.Seqs) == 1 {
		r.put = append(r.put, message{s.Seq, res.Seqs[0]})
	}
	return err
}

// from is the index of the first message at or behind a seq of the recording;
// what is named there need not be a message.
func (r *run) from(seq int64) int {
	i, _ := slices.BinarySearchFunc(r.put, seq, func(m message, seq int64) int { return cmp.Compare(m.of, seq) })
	return i
}

// call is what the model sees before it replies.
func (r *run) call(ctx context.Context) error {
	res, err := r.window(ctx)
	if err != nil {
		return err
	}
	r.ledger.Add(windowOf(res))
	if res.OverBudget != nil {
		r.res.OverBudget++
	}
	r.res.LeftOut += int64(res.LeftOut)
	r.res.MaxLeftOut = max(r.res.MaxLeftOut, res.LeftOut)
	return nil
}

func (r *run) window(ctx context.Context) (contextengine.AssembleResult, error) {
	return r.e.Assemble(ctx, contextengine.AssembleParams{Session: r.o.Session, TokenBudget: &r.o.Budget, Model: r.o.Model})
}

func windowOf(res contextengine.AssembleResult) prefix.Window {
	w := prefix.Window{Seq: res.Head, Addition: res.SystemPromptAddition, Messages: res.Messages}
	if p := res.ContextProjection; p != nil {
		w.Epoch, w.Fingerprint = p.Epoch, p.Fingerprint
	}
	return w
}

// turn ends one and pays at once what it owes: a replay has no background.
func (r *run) turn(ctx context.Context) error {
	res, err := r.e.AfterTurn(ctx, contextengine.AfterTurnParams{
		Session: r.o.Session, Messages: []json.RawMessage{}, TokenBudget: &r.o.Budget,
		RuntimeContext: &contextengine.RuntimeContext{ModelID: r.o.Model},
	})
	if err != nil || res.Compaction == contextengine.CompactionNone || res.Compaction == "" {
		return err
	}
	done, err := r.e.Compact(ctx, contextengine.CompactParams{Session: r.o.Session, TokenBudget: &r.o.Budget})
	if err != nil || !done.Compacted {
		return err
	}
	r.res.Compactions++
	var details struct {
		Calls int `json:"calls"`
	}
	if done.Result != nil && json.Unmarshal(done.Result.Details, &details) == nil {
		r.res.SummaryCalls += details.Calls
	}
	return nil
}

func (r *run) end(ctx context.Context) (Result, error) {
	last, err := r.e.Assemble(ctx, contextengine.AssembleParams{
		Session: r.o.Session, TokenBudget: &r.o.Budget, Model: r.o.Model, Explain: true,
	})
	if err != nil {
		return Result{}, err
	}
	for _, e := range last.Explanation {
		switch {
		case !e.Shown:
		case e.Kind == "summary":
			r.res.Summaries++
		case e.Kind == "message":
			r.res.Shown++
		}
	}
	r.res.LastLeft, r.res.LastTokens = last.LeftOut, last.EstimatedTokens
	r.res.Totals = r.ledger.Totals()
	r.res.FreshTokens, r.res.ReusedShare = r.res.Fresh(), r.res.Share()
	return r.res, nil
}
