package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/engined/engined/internal/retrieval"
)

// depths are how many hits are looked at.
var depths = []int{5, 10, 20}

// recall counts the questions of which some turn that answers is among the
// first hits.
type recall struct {
	name  string
	found [3]int
	all   int
	// heldOut and heldOutAll count at the middle depth, in the conversations that
	// the weights of the rank were not chosen on.
	heldOut, heldOutAll int
	took                time.Duration
}

// tunedOn are the conversations that the weights of the rank were chosen on.
var tunedOn = []string{"conv-26", "conv-41"}

func (r *recall) count(c *conversation, q *question, hits []int) {
	heldOut := !slices.Contains(tunedOn, c.id)
	r.all++
	if heldOut {
		r.heldOutAll++
	}
	for i, depth := range depths {
		if !slices.ContainsFunc(hits[:min(depth, len(hits))], func(h int) bool { return q.evidence[h] }) {
			continue
		}
		r.found[i]++
		if heldOut && i == 1 {
			r.heldOut++
		}
	}
}

// searches compares search with plain BM25 over the same turns.
func (b *bench) searches(ctx context.Context, convs []conversation) ([]recall, error) {
	text, named := recall{name: "plain BM25, the turns' texts"}, recall{name: "plain BM25, with the speakers' names"}
	strict, ours := recall{name: "engined, `match=all`"}, recall{name: "engined, `match=any`"}
	for i := range convs {
		c := &convs[i]
		var texts, withNames []string
		for _, t := range c.turns {
			texts, withNames = append(texts, t.text), append(withNames, t.speaker+": "+t.text)
		}
		plain, full := newBM25(texts), newBM25(withNames)
		key := "search:" + c.id
		seqs, err := b.say(ctx, key, c.turns)
		if err != nil {
			return nil, err
		}
		if err := b.indexed(ctx); err != nil {
			return nil, err
		}
		for j := range c.questions {
			q := &c.questions[j]
			text.count(c, q, plain.top(q.text, depths[2]))
			named.count(c, q, full.top(q.text, depths[2]))
			for match, into := range map[retrieval.Match]*recall{retrieval.MatchAll: &strict, retrieval.MatchAny: &ours} {
				began := time.Now()
				a, err := b.searcher.Search(ctx, retrieval.Request{Tenant: tenant, Query: q.text, Match: match, SessionKey: key, Limit: depths[2]})
				if err != nil {
					return nil, fmt.Errorf("%q: %w", q.text, err)
				}
				into.took += time.Since(began)
				var hits []int
				for _, h := range a.Hits {
					hits = append(hits, seqs[h.Seq])
				}
				into.count(c, q, hits)
			}
		}
	}
	return []recall{text, named, strict, ours}, nil
}

// firstTen are the first ten hits of each question, as turns.
func (b *bench) firstTen(ctx context.Context, c *conversation) ([][]int, error) {
	out := make([][]int, len(c.questions))
	for i := range c.questions {
		a, err := b.searcher.Search(ctx, retrieval.Request{
			Tenant: tenant, Query: c.questions[i].text, Match: retrieval.MatchAny, SessionKey: "search:" + c.id, Limit: 10,
		})
		if err != nil {
			return nil, err
		}
		for _, h := range a.Hits {
			out[i] = append(out[i], int(h.Seq)-1) // the session holds its turns and nothing else
		}
	}
	return out, nil
}
