package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// Reasons of calls that change nothing, in the host's words.
const (
	reasonNothing   = string(compact.StopNothing)
	reasonCompacted = string(compact.StopCompacted)
)

// Compactor plans a compaction from the log, has the summaries written and
// commits them if the epoch still is the planned one. Explicit calls and
// workers share it.
type Compactor struct {
	cfg    Config
	flight flights
	strategy
}

func newCompactor(cfg Config, s strategy) *Compactor { return &Compactor{cfg: cfg, strategy: s} }

// Compact serves an explicit call. Of several at once for one session, one
// compacts; the others wait and find it done.
func (c *Compactor) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	none := contextengine.CompactResult{}
	if p.TokenBudget != nil {
		if err := checkBudget(*p.TokenBudget); err != nil {
			return none, err
		}
	}
	if n := p.CurrentTokenCount; n != nil && (*n < 0 || *n > maxBudget) {
		return none, &contextengine.InvalidError{Field: "currentTokenCount", Reason: fmt.Sprintf("a number of tokens from 0 to %d", int64(maxBudget))}
	}
	if t := p.CompactionTarget; t != "" && t != "budget" && t != "threshold" {
		return none, &contextengine.InvalidError{Field: "compactionTarget", Reason: `"budget" or "threshold"`}
	}
	before, err := c.cfg.Log.Session(ctx, p.Tenant, p.SessionKey)
	if err != nil {
		return unknownIsFine(contextengine.CompactResult{OK: true, Reason: reasonNothing, Epoch: 1}, err)
	}
	if e := p.ExpectedEpoch; e != nil && *e != before.Epoch {
		return none, &contextengine.EpochConflictError{Expected: *e, Epoch: before.Epoch}
	}
	done, err := c.flight.enter(ctx, before.SID)
	if err != nil {
		return none, err
	}
	defer done()
	for try, epoch := 1, before.Epoch; ; try++ {
		res, err := c.run(ctx, p, epoch, false)
		if why, ok := unwritten(err); ok && ctx.Err() == nil {
			// The models' fault, and nothing has changed: it is an answer.
			return contextengine.CompactResult{Reason: why, Epoch: epoch}, nil
		}
		conflict, ok := errors.AsType[*contextengine.EpochConflictError](err)
		if !ok {
			return res, err
		}
		// Somebody stepped the epoch. A compaction did what was asked; after a
		// reset, a rewind or an undo the question is a new one.
		v, err := c.cfg.Log.View(ctx, p.Tenant, p.SessionKey, uuid.Nil, 0, 0)
		if err != nil {
			return unknownIsFine(contextengine.CompactResult{OK: true, Reason: reasonNothing, Epoch: 1}, err)
		}
		if v.State.Cause == events.CauseCompaction || try == stepTries || p.ExpectedEpoch != nil {
			return contextengine.CompactResult{OK: true, Reason: reasonCompacted, Epoch: conflict.Epoch}, nil
		}
		epoch = v.Epoch
	}
}

// unwritten tells that the summarizers were asked as often as they are, and why
// none gave a summary.
func unwritten(err error) (why string, ok bool) {
	step, ok := errors.AsType[*compact.StepError](err)
	var final interface{ Final() bool }
	if !ok || !errors.As(step.Err, &final) || !final.Final() {
		return "", false
	}
	return "no summary: " + step.Err.Error(), true
}

// Owed pays a session's debt, if there is anything to gain. It answers with an
// *EpochConflictError when somebody else stepped the epoch meanwhile. An error
// has changed nothing.
func (c *Compactor) Owed(ctx context.Context, s store.Session, d store.Debt) (contextengine.CompactResult, error) {
	done, err := c.flight.enter(ctx, s.SID)
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	defer done()
	budget := int(d.Budget)
	return c.run(ctx, contextengine.CompactParams{
		Session: contextengine.Session{Tenant: s.Tenant, SessionKey: s.Key}, TokenBudget: &budget,
	}, s.Epoch, c.cfg.LastResortAfter > 0 && d.Failures >= c.cfg.LastResortAfter)
}

// job is one compaction in the making.
type job struct {
	view    store.View
	entries []window.Entry
	// state is the view's with what the newest calls teach of token counts.
	state events.State
	// model is the one that the session's newest turns named.
	model  string
	plan   compact.Plan
	forced bool
	// over tells that the window is over the budget.
	over  bool
	lease string
	// told is what hooks were told of it, nil where there are none.
	told *toldHooks
	// successor is the host session that follows, "" for none.
	successor string
	// again holds, by step, the summaries that a redo writes anew; nil for any
	// other compaction.
	again map[int]events.SummaryBody
}

func (c *Compactor) run(ctx context.Context, p contextengine.CompactParams, epoch int64, lastResort bool) (contextengine.CompactResult, error) {
	nothing := contextengine.CompactResult{OK: true, Reason: reasonNothing, Epoch: 1}
	j, stop, err := c.prepare(ctx, p, epoch)
	if err != nil {
		return unknownIsFine(nothing, err)
	}
	if stop == "" && p.DryRun {
		return c.dryRun(ctx, j)
	}
	if stop == "" && c.cfg.Hooks != nil {
		told := c.before(ctx, j)
		// What was written meanwhile belongs into the plan.
		if now, err := c.cfg.Log.Session(ctx, p.Tenant, p.SessionKey); err != nil || now.Head != j.view.Head || now.Epoch != epoch {
			if j, stop, err = c.prepare(ctx, p, epoch); err != nil {
				told.after(contextengine.CompactResult{}, err)
				return unknownIsFine(nothing, err)
			}
		}
		j.told = told
	}
	if stop != "" {
		res := contextengine.CompactResult{OK: true, Reason: string(stop), Epoch: j.view.Epoch}
		j.told.after(res, nil)
		return res, nil
	}
	res, err := c.make(ctx, p, j, lastResort)
	if err != nil {
		res, err = unknownIsFine(nothing, err)
	}
	j.told.after(res, err)
	return res, err
}

// prepare reads the session as it is and plans.
func (c *Compactor) prepare(ctx context.Context, p contextengine.CompactParams, epoch int64) (*job, compact.Stop, error) {
	v, err := c.cfg.Log.View(ctx, p.Tenant, p.SessionKey, uuid.Nil, 0, 0)
	if err != nil {
		return nil, "", err
	}
	if v.Epoch != epoch {
		return nil, "", &contextengine.EpochConflictError{Expected: epoch, Epoch: v.Epoch}
	}
	j := &job{view: v, lease: p.LeaseToken}
	if j.entries, err = c.uncovered(ctx, v); err != nil {
		return nil, "", err
	}
	if err := c.count(ctx, j); err != nil {
		return nil, "", err
	}
	var stop compact.Stop
	planned := c.planInput(j, p)
	j.forced = planned.Force
	j.plan, stop = c.plan(planned)
	// Over its budget a window leaves messages out unseen: a summary by rule is
	// better than none.
	j.over = planned.Budget > 0 && j.plan.TokensBefore > planned.Budget || p.CurrentTokenCount != nil && *p.CurrentTokenCount > planned.Budget
	return j, stop, nil
}

// count finds out how the session's model counts: as its newest calls teach or, where
// they teach nothing, as is known of its family.
func (c *Compactor) count(ctx context.Context, j *job) (err error) {
	if j.state, err = c.calibrate(ctx, j.view, j.entries); err != nil {
		return err
	}
	if j.model, err = c.cfg.lastModel(ctx, j.view); err != nil || j.model == "" {
		return err
	}
	j.state.FactorMilli = factor(&j.state, j.model)
	return nil
}

// make has the summaries written and commits them.
func (c *Compactor) make(ctx context.Context, p contextengine.CompactParams, j *job, lastResort bool) (contextengine.CompactResult, error) {
	v := j.view
	if p.RotateSession && c.rotates {
		j.successor = uuid.NewString()
	}
	lastResort = lastResort || j.over && c.cfg.LastResortAfter > 0
	out, err := compact.Run(ctx, c.runInput(v, j.plan, p.CustomInstructions, lastResort))
	if _, step := errors.AsType[*compact.StepError](err); !step && errors.Is(err, compact.ErrNotSmaller) {
		return contextengine.CompactResult{OK: true, Reason: reasonNothing, Epoch: v.Epoch}, nil
	}
	if err != nil {
		return contextengine.CompactResult{}, c.cfg.unlessErased(ctx, v.Session, fmt.Errorf("compaction: %w", err))
	}
	return c.commit(ctx, j, p.SessionTarget, out)
}

func (c *Compactor) runInput(v store.View, p compact.Plan, instructions string, lastResort bool) compact.RunInput {
	s := v.Session
	in := compact.RunInput{
		Plan: p, Source: source{lineOf(c.cfg.Log, v)}, Drafts: drafts{c.cfg.Log, s}, Summarizer: c.summarizer,
		Estimate: estimateSummary(s), Instructions: instructions, Parallel: c.cfg.Parallel,
	}
	if c.cfg.Summarizers != nil {
		in.Summarizer = c.dress(c.cfg.Summarizers.For(s.Tenant, s.SID, lastResort))
	}
	return in
}

// uncovered reads the facts of every message on the path that no summary
// covers, in log order.
func (c *Compactor) uncovered(ctx context.Context, v store.View) ([]window.Entry, error) {
	var out []window.Entry
	since, upto := v.State.FirstUncovered(), v.State.Line.Place(v.Head)
	line := lineOf(c.cfg.Log, v)
	for upto >= since {
		page, err := line.facts(ctx, upto, since, lastFactsPage)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if v.State.OnPath(e.Seq) && !v.State.Covered(e.Seq) {
				out = append(out, e)
			}
		}
		if len(page) < lastFactsPage {
			break
		}
		upto = page[len(page)-1].Seq - 1
	}
	slices.Reverse(out)
	return out, nil
}

func (c *Compactor) planInput(j *job, p contextengine.CompactParams) compact.PlanInput {
	v := j.view
	budget := c.cfg.DefaultBudget
	if v.TokenBudget > 0 {
		budget = int(v.TokenBudget)
	}
	if p.TokenBudget != nil {
		budget = *p.TokenBudget
	}
	in := compact.PlanInput{
		Epoch: v.Epoch, Policy: c.cfg.Models.Policy(c.cfg.Policy, j.model), Budget: budget, Force: p.Force,
		FactorMilli: j.state.FactorMilli, CompactedAt: v.State.ForcedAt,
		Entries: make([]compact.Entry, len(j.entries)),
	}
	for i, e := range j.entries {
		in.Entries[i] = compact.Entry{Seq: e.Seq, Facts: shorter(&v.State, e).Facts}
	}
	for _, l := range v.State.Live {
		in.Live = append(in.Live, compact.SummaryRef{
			Seq: l.Seq, Level: l.Level, Tokens: l.Tokens, SourceTokens: int(l.CoveredTokens), Covers: l.Covers,
		})
	}
	if p.CurrentTokenCount != nil {
		ours := v.State.LiveTokens(v.LeafOffset) * int64(j.state.FactorMilli) / 1000
		in.Target = net(budget, *p.CurrentTokenCount, int(ours))
		in.Force = in.Force || *p.CurrentTokenCount > budget
	}
	return in
}

// net takes off the budget what the host's prompt holds beside our window, but
// never more than three quarters: the host's count may be of another moment.
func net(budget, observed, ours int) int {
	if observed <= ours {
		return budget
	}
	return max(budget-(observed-ours), budget/4, 1)
}

// planDetails is what a dry run tells of a plan.
type planDetails struct {
	compact.Plan
	compact.Effort
	// EstimatedCostMicros is in millionths of a US dollar; 0 where no price is set.
	EstimatedCostMicros int64 `json:"estimatedCostMicros,omitempty"`
}

func (c *Compactor) dryRun(ctx context.Context, j *job) (contextengine.CompactResult, error) {
	d := planDetails{Plan: j.plan, Effort: j.plan.Effort()}
	if c.cfg.Summarizers != nil {
		d.EstimatedCostMicros = c.cfg.Summarizers.Cost(j.view.Tenant, int64(d.InputTokens), int64(d.OutputTokens))
	}
	details, err := json.Marshal(d)
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	return contextengine.CompactResult{
		OK: true, Epoch: j.view.Epoch, Reason: "dry run",
		Result: &contextengine.CompactionOutcome{
			TokensBefore: j.plan.TokensBefore, TokensAfter: j.plan.TokensAfterMax,
			FirstKeptEntryID: entryID(ctx, c.cfg.Log, j.view, j.plan.FirstKept), Details: details,
		},
	}, nil
}
