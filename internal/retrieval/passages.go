package retrieval

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// PassageRequest asks for what a prompt may need of a session's past.
type PassageRequest struct {
	Tenant string
	// Scopes are what is looked at: see PathScopes, which leaves out what a reset
	// or rewind took away, and cut the tail that the window shows anyway. It is
	// required.
	Scopes []store.SearchScope
	Prompt string
	Kinds  []store.SearchKind
	// Without leaves out messages that have one of these flags; Hidden ones are
	// always left out.
	Without message.Flags
	// Limit is the most passages, 20 when 0.
	Limit int
	// MaxTokens bounds the sum of the passages' Tokens; 0 is no bound. What does
	// not fit is passed over for what does.
	MaxTokens int
}

// Passage is a part of the past, at most search.PartBytes long.
type Passage struct {
	SID        uuid.UUID
	SessionKey string
	Seq        int64
	Kind       store.SearchKind
	Role       message.Role
	Tool       string
	At         time.Time
	Text       string
	// Tokens is an estimate of Text: never more than the message's own.
	Tokens int
	Score  float64
}

// maxPrompt and lastWants are how much of a prompt's end is looked at, maxWants
// how many of its rarest words are asked for.
const (
	maxPrompt = 8 << 10
	lastWants = 96
	maxWants  = 24
)

// Passages answers with the best passages for a prompt, best first. It only
// reads: it is as fresh as the index is, and no prompt is an error.
func (s *Searcher) Passages(ctx context.Context, q PassageRequest) ([]Passage, error) {
	if len(q.Scopes) == 0 {
		return nil, nil
	}
	r := withDefaults(Request{Tenant: q.Tenant, Match: MatchAny, Scopes: q.Scopes, Kinds: q.Kinds, Without: q.Without | message.Hidden, Limit: MaxLimit})
	prompt := search.Clean(q.Prompt)
	for len(prompt) > maxPrompt {
		cut := len(prompt) - maxPrompt
		for !utf8.RuneStart(prompt[cut]) {
			cut++
		}
		prompt = prompt[cut:]
	}
	p := &plan{
		filter: store.SearchFilter{Sessions: q.Scopes, Kinds: r.Kinds, Without: r.Without},
		wants:  search.Wants(search.Question(prompt)), until: s.now().Add(budget),
	}
	if len(p.wants) == 0 {
		return nil, nil
	}
	p.wants = p.wants[max(0, len(p.wants)-lastWants):]
	p.ask(MatchAny)
	sids := make([]uuid.UUID, len(q.Scopes))
	for i := range q.Scopes {
		sids[i] = q.Scopes[i].SID
	}
	state, err := s.read.SearchState(ctx, q.Tenant, sids)
	if err != nil {
		return nil, err
	}
	at := start(state)
	if len(p.wants) > maxWants {
		if err := s.weigh(ctx, q.Tenant, p, at); err != nil {
			return nil, err
		}
		p.keepRarest(maxWants)
	}
	var out Answer
	if err := s.any(ctx, &r, p, at, &out); err != nil {
		return nil, err
	}
	return pick(out.Hits, cmp.Or(q.Limit, 20), q.MaxTokens), nil
}

// keepRarest drops the wants that tell least.
func (p *plan) keepRarest(n int) {
	order := make([]int, len(p.wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.idf[b], p.idf[a]) })
	kept := make([]search.Want, 0, n)
	for _, i := range order[:n] {
		kept = append(kept, p.wants[i])
	}
	p.wants = kept
	p.ask(MatchAny)
}

func pick(hits []Hit, limit, maxTokens int) []Passage {
	var out []Passage
	used := 0
	for i := range hits {
		h := &hits[i]
		// A token has at least one byte; most have four.
		tokens := min(h.Tokens, len(h.Text))
		if h.Tokens == 0 {
			tokens = (len(h.Text) + 3) / 4
		}
		if maxTokens > 0 && used+tokens > maxTokens {
			continue
		}
		used += tokens
		out = append(out, Passage{
			SID: h.SID, SessionKey: h.SessionKey, Seq: h.Seq, Kind: h.Kind, Role: h.Role, Tool: h.Tool,
			At: h.At, Text: h.Text, Tokens: tokens, Score: h.Score,
		})
		if len(out) == limit {
			break
		}
	}
	return out
}
