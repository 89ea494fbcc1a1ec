package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

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
const policyVersion = "w1"

// windows projects sessions into windows and caches what cannot change.
type windows struct {
	cfg   Config
	cache *cache
}

func newWindows(cfg Config) *windows { return &windows{cfg: cfg, cache: newCache(cfg.CacheBytes)} }

// material is what a window is planned from: immutable once made.
type material struct {
	sid   uuid.UUID
	epoch int64
	head  int64
	state events.State
	// entries are the uncovered messages of the path up to head, in log order,
	// from loaded on; older tells that more lie before.
	entries []window.Entry
	loaded  int64
	older   bool
	// earlier counts the uncovered messages of the path before earlierOf.
	earlier   int64
	earlierOf int64
	// recalled are covered calls that late results brought back, by the result.
	recalled map[int64][]window.Entry
	bodies   map[int64][]byte
	texts    map[int64]string
}

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
	s, m, err := w.load(ctx, p)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		return w.empty(p), nil, nil
	}
	if err != nil {
		return none, nil, err
	}
	budget, err := w.budget(ctx, p, s, m.head)
	if err != nil {
		return none, nil, err
	}
	addition := guidance(p.AvailableTools, m.state)
	in := w.input(m, s, budget-tokens.Text(addition))
	if m, err = w.reach(ctx, s, m, &in, p.Explain); err != nil {
		return none, nil, err
	}
	if m, err = w.recall(ctx, s, m, &in); err != nil {
		return none, nil, err
	}
	if m, err = w.countEarlier(ctx, s, m); err != nil {
		return none, nil, err
	}
	plan := window.Build(in)
	msgs, m, err := w.render(ctx, s, m, plan)
	if err != nil {
		return none, nil, err
	}
	if p.AsOfSeq == nil {
		w.cache.put(s.Tenant, s.Key, m)
	}
	res := contextengine.AssembleResult{
		Messages: msgs, EstimatedTokens: plan.Tokens + tokens.Text(addition), SystemPromptAddition: addition,
		ContextProjection: &contextengine.ContextProjection{
			Mode: "per_turn", Epoch: plan.EpochLabel, Fingerprint: plan.Fingerprint,
		},
		Head: m.head, Epoch: m.epoch, OverBudget: plan.Over, LeftOut: m.leftOut(plan),
	}
	if p.Explain {
		res.Explanation = explain(plan)
	}
	return res, w.answer(s, m, p, budget, res), nil
}

// empty is the window of a session that nobody has written to: that of the
// first epoch, without messages. Asking creates nothing.
func (w *windows) empty(p contextengine.AssembleParams) contextengine.AssembleResult {
	budget := w.cfg.DefaultBudget
	if p.TokenBudget != nil {
		budget = *p.TokenBudget
	}
	plan := window.Build(w.input(&material{epoch: 1, state: events.FirstState()}, store.Session{}, budget))
	return contextengine.AssembleResult{
		Messages: []json.RawMessage{}, Epoch: 1,
		ContextProjection: &contextengine.ContextProjection{Mode: "per_turn", Epoch: plan.EpochLabel, Fingerprint: plan.Fingerprint},
	}
}

// load reads the session and what a window at its head, or as of a seq, is
// planned from, starting from the cached material where there is some.
func (w *windows) load(ctx context.Context, p contextengine.AssembleParams) (store.Session, *material, error) {
	cached := w.cache.get(p.Tenant, p.SessionKey)
	if p.AsOfSeq != nil || cached == nil {
		cached = &material{}
	}
	v, err := w.cfg.Log.View(ctx, p.Tenant, p.SessionKey, cached.sid, cached.head, newPage)
	if err != nil {
		return store.Session{}, nil, err
	}
	if p.AsOfSeq != nil && *p.AsOfSeq < v.Head {
		state, err := w.cfg.Log.StateAsOf(ctx, p.Tenant, v.SID, *p.AsOfSeq)
		if err != nil {
			return store.Session{}, nil, err
		}
		// A session that starts with messages of no dialect learns its own later.
		v.Session.Dialect, err = w.cfg.Log.DialectAsOf(ctx, p.Tenant, v.SID, *p.AsOfSeq)
		return v.Session, cold(v.Session, state, *p.AsOfSeq), err
	}
	if cached.sid != v.SID || cached.epoch != v.Epoch || len(v.New) == newPage {
		return v.Session, cold(v.Session, v.State, v.Head), nil
	}
	m := *cached
	m.head = v.Head
	if len(v.New) > 0 {
		m.entries = slices.Clone(m.entries)
		m.bodies = cloneMap(m.bodies)
		for i, e := range v.New {
			if m.state.OnPath(e.Seq) && !m.state.Covered(e.Seq) {
				m.entries = append(m.entries, e)
				m.bodies[e.Seq] = v.Bodies[i]
			}
		}
	}
	return v.Session, &m, nil
}

// cold is material of which nothing is read yet.
func cold(s store.Session, state events.State, head int64) *material {
	return &material{
		sid: s.SID, epoch: state.Epoch, head: head, state: state, loaded: head + 1,
		older: head >= state.FirstUncovered(), bodies: map[int64][]byte{}, texts: map[int64]string{},
	}
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m)+8)
	maps.Copy(out, m)
	return out
}

// budget is the caller's, else what the newest turn reported, else the default.
func (w *windows) budget(ctx context.Context, p contextengine.AssembleParams, s store.Session, head int64) (int, error) {
	if p.TokenBudget != nil {
		return *p.TokenBudget, nil
	}
	if head >= s.Head {
		if s.TokenBudget > 0 {
			return int(s.TokenBudget), nil
		}
		return w.cfg.DefaultBudget, nil
	}
	for upto := head; ; {
		seq, body, err := w.cfg.Log.NewestOfType(ctx, s.Tenant, s.SID, events.TurnCompleted, upto)
		if err != nil || seq == 0 {
			return w.cfg.DefaultBudget, err
		}
		var b events.TurnCompletedBody
		if err := json.Unmarshal(body, &b); err != nil {
			return 0, fmt.Errorf("turn.completed %d: %w", seq, err)
		}
		if b.TokenBudget > 0 {
			return b.TokenBudget, nil
		}
		upto = seq - 1
	}
}

func (w *windows) input(m *material, s store.Session, budget int) window.Input {
	in := window.Input{
		Params: window.Params{
			Budget: budget, FactorMilli: m.state.FactorMilli, Dialect: s.Dialect, PolicyHash: policyVersion,
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

// reach reads older facts until the plan would be the same with all of them;
// all of them, where each is to be explained.
func (w *windows) reach(ctx context.Context, s store.Session, m *material, in *window.Input, all bool) (*material, error) {
	since := m.state.FirstUncovered()
	for page := firstFactsPage; window.NeedMore(*in) || all && in.Older; page = min(2*page, lastFactsPage) {
		facts, err := w.cfg.Log.Facts(ctx, s.Tenant, m.sid, m.loaded-1, since, page)
		if err != nil {
			return nil, err
		}
		next := *m
		next.older = len(facts) == page
		next.entries = make([]window.Entry, 0, len(facts)+len(m.entries))
		for _, e := range slices.Backward(facts) {
			if m.state.OnPath(e.Seq) && !m.state.Covered(e.Seq) {
				next.entries = append(next.entries, e)
			}
		}
		next.entries = append(next.entries, m.entries...)
		if len(facts) > 0 {
			next.loaded = facts[len(facts)-1].Seq
		}
		m = &next
		in.Entries, in.Older = m.entries, m.older
	}
	return m, nil
}

// render reads the bodies that the plan shows and are not at hand.
func (w *windows) render(ctx context.Context, s store.Session, m *material, plan window.Plan) ([]json.RawMessage, *material, error) {
	next := *m
	next.bodies = make(map[int64][]byte, len(plan.Items))
	next.texts = make(map[int64]string, len(m.state.Live))
	var missing []int64
	for _, it := range plan.Items {
		if it.Kind == window.KindSummary {
			if t, ok := m.texts[it.Seq]; ok {
				next.texts[it.Seq] = t
				continue
			}
		} else if b, ok := m.bodies[it.Seq]; ok {
			next.bodies[it.Seq] = b
			continue
		}
		missing = append(missing, it.Seq)
	}
	if len(missing) > 0 {
		read, err := w.cfg.Log.Bodies(ctx, s.Tenant, m.sid, missing)
		if err != nil {
			return nil, nil, err
		}
		for _, it := range plan.Items {
			body, ok := read[it.Seq]
			if !ok {
				continue
			}
			if it.Kind == window.KindMessage {
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
	msgs, err := plan.Render(window.Source{Bodies: next.bodies, Summaries: next.texts, Estimate: tokens.Text})
	if err != nil {
		return nil, nil, err
	}
	return msgs, &next, nil
}

func explain(plan window.Plan) []contextengine.Explanation {
	out := make([]contextengine.Explanation, 0, len(plan.Items)+len(plan.LeftOut))
	for _, it := range plan.Items {
		out = append(out, contextengine.Explanation{
			Seq: it.Seq, Kind: it.Kind.String(), Tokens: it.Tokens, Shown: true, Reason: it.Reason.String(),
		})
	}
	for _, l := range plan.LeftOut {
		out = append(out, contextengine.Explanation{
			Seq: l.Seq, Kind: l.Kind.String(), Tokens: l.Tokens, Reason: l.Reason.String(),
		})
	}
	return out
}

// answer is what time travel needs to give the same window again.
func (w *windows) answer(s store.Session, m *material, p contextengine.AssembleParams, budget int, res contextengine.AssembleResult) *store.Answer {
	if p.AsOfSeq != nil {
		return nil
	}
	params, err := json.Marshal(struct {
		Budget int    `json:"budget"`
		Model  string `json:"model,omitempty"`
		Policy string `json:"policy"`
		Factor int    `json:"factorMilli"`
	}{budget, p.Model, policyVersion, m.state.FactorMilli})
	if err != nil {
		return nil
	}
	return &store.Answer{
		Tenant: s.Tenant, SID: m.sid, Head: m.head, Epoch: m.epoch, Params: params,
		Fingerprint: res.ContextProjection.Fingerprint, Tokens: res.EstimatedTokens, At: w.cfg.Now(),
	}
}
