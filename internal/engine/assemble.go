package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

const (
	// newPage is how many new messages come along with the session's state.
	newPage = 512
	// Cold reads walk the log backwards in pages that grow from the first to
	// the last of these sizes.
	firstFactsPage = 256
	lastFactsPage  = 8192
)

// policyVersion names what shapes a window beside log and budget: raise it
// with any change of estimator or window rules.
const policyVersion = "w2"

// policy names the rules in force.
func (w *windows) policy() string {
	policy := policyVersion
	if w.recollect != nil {
		policy += "-" + passageRules
	}
	if p := w.cfg.Prune; p.Mode != window.PruneOff {
		return fmt.Sprintf("%s-prune%v", policy, p)
	}
	return policy
}

// windowTries bounds how often a window is begun anew because what it was read
// from went meanwhile, with an ancestor.
const windowTries = 3

// windows projects sessions into windows and caches what cannot change.
type windows struct {
	cfg   Config
	cache *cache
	// recollect puts older passages into windows; nil leaves them out.
	recollect *recollector
}

func newWindows(cfg Config) *windows { return &windows{cfg: cfg, cache: newCache(cfg.CacheBytes)} }

func (w *windows) assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, *store.Answer, error) {
	var none contextengine.AssembleResult
	if p.TokenBudget != nil {
		if err := checkBudget(*p.TokenBudget); err != nil {
			return none, nil, err
		}
	}
	if p.AsOfSeq != nil && *p.AsOfSeq < 0 {
		return none, nil, &contextengine.InvalidError{Field: "asOfSeq", Reason: "a seq, 0 or more"}
	}
	var err error
	for range windowTries {
		var s store.Session
		var m *material
		if s, m, err = w.load(ctx, p); err != nil {
			break
		}
		var res contextengine.AssembleResult
		var rec *store.Answer
		if res, rec, err = w.project(ctx, p, s, m); err == nil {
			return res, rec, nil
		}
		err = w.cfg.unlessErased(ctx, s, err)
		if _, moved := errors.AsType[*contextengine.EpochConflictError](err); !moved {
			break
		}
	}
	if errors.Is(err, contextengine.ErrUnknownSession) {
		w.cache.forget(p.Tenant, p.SessionKey)
		return w.empty(p), nil, nil
	}
	return none, nil, err
}

// project plans and renders the window of what was loaded.
func (w *windows) project(ctx context.Context, p contextengine.AssembleParams, s store.Session, m *material) (contextengine.AssembleResult, *store.Answer, error) {
	var none contextengine.AssembleResult
	budget, err := w.budget(ctx, p, s, m)
	if err != nil {
		return none, nil, err
	}
	addition := guidance(p.AvailableTools, m.state)
	in := w.input(m, s, p.Model, budget-tokens.Text(addition))
	if m, err = w.reach(ctx, s, m, &in, p.Explain); err != nil {
		return none, nil, err
	}
	if m, err = w.bringBack(ctx, s, m, &in); err != nil {
		return none, nil, err
	}
	if m, err = w.countEarlier(ctx, s, m); err != nil {
		return none, nil, err
	}
	plan, room := w.recollect.plan(in)
	msgs, m, err := w.render(ctx, s, m, plan)
	if err != nil {
		return none, nil, err
	}
	if p.AsOfSeq == nil {
		w.cache.put(s.Tenant, s.Key, m)
	}
	res := contextengine.AssembleResult{
		Messages: msgs, EstimatedTokens: plan.Tokens + tokens.Text(addition), TokenBudget: budget, SystemPromptAddition: addition,
		ContextProjection: &contextengine.ContextProjection{
			Mode: "per_turn", Epoch: plan.EpochLabel, Fingerprint: plan.Fingerprint,
		},
		Head: m.ownHead(), Epoch: m.epoch, OverBudget: m.named(plan.Over), LeftOut: m.leftOut(plan),
	}
	if p.Explain {
		res.Explanation = m.explain(plan)
	}
	found := w.recollect.find(ctx, w, p, s, m, in, plan, budget, room)
	found.into(&res, m, plan.Items, p.Explain)
	return res, w.answer(s, m, p, budget, res, found.record()), nil
}

// empty is the window of a session that nobody has written to: that of the
// first epoch, without messages. Asking creates nothing.
func (w *windows) empty(p contextengine.AssembleParams) contextengine.AssembleResult {
	budget := w.fallback(p.Model)
	if p.TokenBudget != nil {
		budget = *p.TokenBudget
	}
	plan := window.Build(w.input(&material{epoch: 1, state: events.FirstState()}, store.Session{}, p.Model, budget))
	return contextengine.AssembleResult{
		Messages: []json.RawMessage{}, Epoch: 1, TokenBudget: budget,
		ContextProjection: &contextengine.ContextProjection{Mode: "per_turn", Epoch: plan.EpochLabel, Fingerprint: plan.Fingerprint},
	}
}

// fallback is the budget of a call without one in a session without one.
func (w *windows) fallback(model string) int {
	if n := w.cfg.Models.Budget(model); n > 0 {
		return n
	}
	return w.cfg.DefaultBudget
}

// budget is the caller's, else what the newest turn reported, else the model's,
// else the default.
func (w *windows) budget(ctx context.Context, p contextengine.AssembleParams, s store.Session, m *material) (int, error) {
	if p.TokenBudget != nil {
		return *p.TokenBudget, nil
	}
	if m.ownHead() >= s.Head {
		if s.TokenBudget > 0 {
			return int(s.TokenBudget), nil
		}
		return w.fallback(p.Model), nil
	}
	budget, err := w.line(s, m).budget(ctx, m.head)
	if err != nil || budget > 0 {
		return budget, err
	}
	return w.fallback(p.Model), nil
}

func (w *windows) input(m *material, s store.Session, model string, budget int) window.Input {
	in := window.Input{
		Params: window.Params{
			Budget: budget, FactorMilli: factor(&m.state, model), Dialect: s.Dialect,
			Prune: w.cfg.Prune, PolicyHash: w.policy(),
		},
		Epoch: m.epoch, Entries: m.entries, Older: m.older,
	}
	for i := range m.state.Live {
		in.Summaries = append(in.Summaries, summaryOf(&m.state.Live[i]))
	}
	return in
}

func summaryOf(l *events.LiveSummary) window.Summary {
	return window.Summary{
		Seq: l.Seq, Tokens: l.Tokens, Level: l.Level, Timestamp: l.Timestamp, TokensBefore: int(l.CoveredTokens),
	}
}

// render reads the bodies that the plan shows and are not at hand.
func (w *windows) render(ctx context.Context, s store.Session, m *material, plan window.Plan) ([]json.RawMessage, *material, error) {
	next := *m
	next.bodies = make(map[int64][]byte, len(plan.Items))
	next.texts = make(map[int64]string, len(m.state.Live))
	var missing []int64
	for _, it := range plan.Items {
		if it.Kind == window.KindNotice {
			continue
		}
		if it.Kind == window.KindSummary {
			if t, ok := m.texts[it.Seq]; ok {
				next.texts[it.Seq] = t
				continue
			}
		} else if b, ok := m.bodies[it.Seq]; ok {
			next.bodies[it.Seq] = b
			continue
		}
		missing = append(missing, shownAt(&m.state, it.Seq))
	}
	if len(missing) > 0 {
		read, err := w.line(s, m).bodies(ctx, missing)
		if err != nil {
			return nil, nil, err
		}
		for _, it := range plan.Items {
			at := shownAt(&m.state, it.Seq)
			body, ok := read[at]
			if !ok {
				continue
			}
			if it.Kind == window.KindMessage {
				if at != it.Seq {
					if body, err = events.ReadSuperseded(body); err != nil {
						return nil, nil, err
					}
				}
				next.bodies[it.Seq] = body
				continue
			}
			var sum events.SummaryBody
			if err := json.Unmarshal(body, &sum); err != nil {
				return nil, nil, fmt.Errorf("summary %d: %w", it.Seq, err)
			}
			next.texts[it.Seq] = sum.Text
		}
	}
	msgs, err := plan.Render(window.Source{Bodies: next.bodies, Summaries: next.texts, Estimate: tokens.Text, Seq: m.state.Line.Seq})
	if err != nil {
		return nil, nil, err
	}
	return msgs, &next, nil
}

// answerParams are what a recorded answer depends on beside the log.
type answerParams struct {
	Budget int               `json:"budget"`
	Model  string            `json:"model,omitempty"`
	Policy string            `json:"policy"`
	Factor int               `json:"factorMilli"`
	Recall *recordedPassages `json:"recall,omitempty"`
}

// answer is what time travel needs to give the same window again.
func (w *windows) answer(s store.Session, m *material, p contextengine.AssembleParams, budget int, res contextengine.AssembleResult, recall *recordedPassages) *store.Answer {
	if p.AsOfSeq != nil {
		return nil
	}
	params, err := json.Marshal(answerParams{budget, p.Model, w.policy(), factor(&m.state, p.Model), recall})
	if err != nil {
		return nil
	}
	return &store.Answer{
		Tenant: s.Tenant, SID: m.sid, Head: m.ownHead(), Epoch: m.epoch, Params: params,
		Fingerprint: res.ContextProjection.Fingerprint, Tokens: res.EstimatedTokens, At: w.cfg.Now(),
	}
}
