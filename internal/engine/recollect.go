package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/tokens"
	"github.com/engined/engined/internal/window"
)

const (
	// passageShare of the budget, as a divisor, and at most passageTokens are kept
	// for passages; where that is less than leastPassages, there are none.
	passageShare  = 8
	passageTokens = 2000
	leastPassages = 160
	// maxPassages stand in a window.
	maxPassages = 5
	// passageWait is how long a window waits for passages, if nothing else is said.
	passageWait = 300 * time.Millisecond
	// passageRules names how passages are kept room for and rendered: raise it with
	// any change.
	passageRules = "recall1"
	// maxChoices bounds the sessions whose last choice is kept.
	maxChoices = 4096
)

// recollector chooses older passages for windows.
type recollector struct {
	cfg Config

	mu sync.Mutex
	// chosen is the last choice of each session: within a turn, calls of a model
	// see the same passages although the index moves on.
	chosen map[cacheKey]choice
}

type choice struct {
	of    [sha256.Size]byte
	cites []cite
}

func newRecollector(cfg Config) *recollector {
	return &recollector{cfg: cfg, chosen: make(map[cacheKey]choice)}
}

// recollection is a message with passages, and where it stands.
type recollection struct {
	// before is the place of the user message that it precedes, 0 at the end.
	before int64
	// at is the index among the window's messages.
	at      int
	cites   []cite
	message json.RawMessage
	tokens  int
}

// recorded is what an answer keeps of a recollection: enough to make it again,
// and none of its text.
type recordedPassages struct {
	Before int64  `json:"before,omitempty"`
	Cites  []cite `json:"cites"`
}

// plan is the window's plan and the tokens that passages may take. They are kept
// free only where there is something to recall, that is once a summary stands in
// the window or the tail is trimmed, and then always, so that the tail's start
// depends on the budget and the log and never on what was found.
func (r *recollector) plan(in window.Input) (window.Plan, int) {
	plan := window.Build(in)
	if r == nil || plan.Over != nil || len(in.Summaries) == 0 && plan.TrimFrom == 0 {
		return plan, 0
	}
	room := min(in.Budget/passageShare, passageTokens)
	if room < leastPassages {
		return plan, 0
	}
	in.Budget -= room
	if less := window.Build(in); less.Over == nil {
		return less, room
	}
	return plan, 0
}

// find chooses passages for a window, or gives those of the answer that is on
// record for a window of the past. Whatever goes wrong leaves the window without.
func (r *recollector) find(
	ctx context.Context, w *windows, p contextengine.AssembleParams, s store.Session, m *material, in window.Input, plan window.Plan, budget, room int,
) *recollection {
	if r == nil || room == 0 || len(plan.Items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.PassageWait)
	defer cancel()
	var out *recollection
	var err error
	if p.AsOfSeq != nil {
		out, err = r.again(ctx, w, p, s, m, plan, budget)
	} else {
		out, err = r.choose(ctx, w, p, s, m, in, plan, room)
	}
	if err != nil {
		r.cfg.Logger.Debug("a window goes without passages", "session", m.sid, "error", err)
		return nil
	}
	if out == nil || out.tokens > room {
		return nil
	}
	return out
}

func (r *recollector) choose(
	ctx context.Context, w *windows, p contextengine.AssembleParams, s store.Session, m *material, in window.Input, plan window.Plan, room int,
) (*recollection, error) {
	q, ok := ask(p.Prompt, m, in, plan)
	if !ok {
		return nil, nil
	}
	q.factor = factor(&m.state, p.Model)
	key := cacheKey{s.Tenant, s.Key}
	of := q.hash(m, room)
	cites, known := r.last(key, of)
	if !known {
		var err error
		if cites, err = r.search(ctx, w, s, m, in, plan, q, room); err != nil {
			return nil, err
		}
		r.keep(key, choice{of, cites})
	}
	return r.show(ctx, w, s, m, p.Model, cites, q.before, q.at)
}

// show makes the message of what is cited.
func (r *recollector) show(ctx context.Context, w *windows, s store.Session, m *material, model string, cites []cite, before int64, at int) (*recollection, error) {
	if len(cites) == 0 {
		return nil, nil
	}
	passages, err := w.line(s, m).quote(ctx, cites)
	if err != nil {
		return nil, err
	}
	out := &recollection{before: before, at: at, cites: cites}
	out.message, out.tokens = passageMessage(s.Dialect, passages, factor(&m.state, model))
	return out, nil
}

// passageMessage renders passages and counts what the message costs.
func passageMessage(d message.Dialect, passages []window.Passage, factorMilli int) (json.RawMessage, int) {
	raw := window.RenderPassages(d, passages)
	n := tokens.Text(string(raw)) // never needed: it is a message
	if read, err := message.Read(raw); err == nil {
		n = tokens.Message(read)
	}
	if factorMilli <= 0 {
		factorMilli = 1000
	}
	return raw, (n*factorMilli + 999) / 1000
}

// again makes the recollection of an answer on record: same head, budget, model
// and policy; of several the newest.
func (r *recollector) again(
	ctx context.Context, w *windows, p contextengine.AssembleParams, s store.Session, m *material, plan window.Plan, budget int,
) (*recollection, error) {
	const recent = 64
	answers, err := r.cfg.Log.AnswersAt(ctx, s.Tenant, m.sid, m.ownHead(), recent)
	if err != nil {
		return nil, err
	}
	for i := range answers {
		var was answerParams
		if err := json.Unmarshal(answers[i].Params, &was); err != nil {
			return nil, err
		}
		if was.Budget != budget || was.Model != p.Model || was.Policy != w.policy() {
			continue
		}
		if was.Recall == nil {
			return nil, nil
		}
		at := len(plan.Items)
		if was.Recall.Before > 0 {
			if at = slices.IndexFunc(plan.Items, func(it window.Item) bool {
				return it.Kind == window.KindMessage && it.Seq == was.Recall.Before
			}); at < 0 {
				return nil, nil
			}
		}
		return r.show(ctx, w, s, m, p.Model, was.Recall.Cites, was.Recall.Before, at)
	}
	return nil, nil
}

func (r *recollector) last(key cacheKey, of [sha256.Size]byte) ([]cite, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.chosen[key]
	return c.cites, ok && c.of == of
}

func (r *recollector) keep(key cacheKey, c choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.chosen[key]; !ok && len(r.chosen) >= maxChoices {
		for k := range r.chosen {
			delete(r.chosen, k)
			break
		}
	}
	r.chosen[key] = c
}

// into puts the message into a window.
func (c *recollection) into(res *contextengine.AssembleResult, m *material, items []window.Item, explain bool) {
	if c == nil {
		return
	}
	res.Messages = slices.Insert(slices.Clip(res.Messages), c.at, c.message)
	res.EstimatedTokens += c.tokens
	edge := c.before
	if c.at == len(items) {
		edge = -items[c.at-1].Seq // it moves with the window's end
	}
	res.ContextProjection.Fingerprint = c.fingerprint(res.ContextProjection.Fingerprint, edge)
	if !explain {
		return
	}
	// In the place of their message, and the marks around them with the first.
	passages := make([]contextengine.Explanation, 0, len(c.cites))
	frame := c.tokens
	for _, p := range c.cites {
		frame -= p.Tokens
	}
	for _, p := range c.cites {
		seg, seq, _ := m.state.Line.Locate(p.Place)
		passages = append(passages, contextengine.Explanation{
			Seq: seq, SessionKey: seg.SessionKey, Kind: "passage", Tokens: p.Tokens + frame, Shown: true,
			Reason: "older passage that matches what is asked",
		})
		frame = 0
	}
	res.Explanation = slices.Insert(res.Explanation, c.at, passages...)
}

// fingerprint is equal for windows of equal fingerprint with the same passages
// at the same place: what comes later stands behind them.
func (c *recollection) fingerprint(of string, edge int64) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(struct { // a hash takes everything
		Of    string
		Edge  int64
		Cites []cite
	}{of, edge, c.cites})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// record is what an answer keeps.
func (c *recollection) record() *recordedPassages {
	if c == nil {
		return nil
	}
	return &recordedPassages{Before: c.before, Cites: c.cites}
}
