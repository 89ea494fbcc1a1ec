package retrieval

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// spreads is how many of the best matches give their neighbours a part of
// their rank.
const spreads = 300

// place is a message.
type place struct {
	sid uuid.UUID
	seq int64
}

// any fills a page for a question: the best matches, ranked together with their
// neighbours, which need not match themselves. There is one block of them.
func (s *Searcher) any(ctx context.Context, r *Request, p *plan, at cursor, out *Answer) error {
	if err := s.weigh(ctx, r.Tenant, p, at); err != nil {
		return err
	}
	weights := make([]float64, len(p.lookups))
	for i, owner := range p.owner {
		weights[i] = p.idf[owner]
	}
	found, err := s.read.SearchAny(ctx, r.Tenant, &p.filter, p.lookups, weights, at.average(), at.mark, newest, questionRows)
	if err != nil || len(found) == 0 {
		return err
	}
	hits, _, err := s.decide(ctx, r, p, at, found)
	if err != nil {
		return err
	}
	if hits, err = s.spread(ctx, r, p, at, hits); err != nil {
		return err
	}
	if r.ActiveOnly && r.SessionKey == "" && len(r.Scopes) == 0 {
		if hits, err = s.only(ctx, r, hits); err != nil {
			return err
		}
	}
	hits = hits[min(at.skip, int64(len(hits))):]
	if len(hits) > r.Limit {
		hits = hits[:r.Limit]
		at.skip += int64(r.Limit)
		out.Next = at.encode(r)
	}
	out.Hits = append(out.Hits, hits...)
	return nil
}

// spread adds to each hit its part of its neighbours' ranks, and the neighbours
// that were no hits themselves.
func (s *Searcher) spread(ctx context.Context, r *Request, p *plan, at cursor, hits []Hit) ([]Hit, error) {
	best := slices.Clone(hits)
	slices.SortStableFunc(best, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	best = best[:min(len(best), spreads)]
	around := make([]store.SearchFound, len(best))
	for i := range best {
		around[i] = store.SearchFound{SID: best[i].SID, Seq: best[i].Seq}
	}
	neighbours, err := s.read.SearchNeighbours(ctx, r.Tenant, around)
	if err != nil {
		return nil, err
	}
	share := map[place]float64{}
	for _, n := range neighbours {
		from := &best[n.Of]
		// A neighbour behind the hit has the hit before it.
		part := map[int]float64{-1: search.FromNext, 1: search.FromPrevious, 2: search.FromSecond}[n.Place]
		share[place{from.SID, n.Seq}] += part * from.Score
	}
	own := map[place]struct{}{}
	for i := range hits {
		here := place{hits[i].SID, hits[i].Seq}
		own[here] = struct{}{}
		hits[i].Score += share[here]
	}
	var more []store.SearchFound
	for here := range share {
		if _, is := own[here]; !is {
			more = append(more, store.SearchFound{SID: here.sid, Seq: here.seq})
		}
	}
	slices.SortFunc(more, func(a, b store.SearchFound) int {
		return cmp.Or(bytes.Compare(a.SID[:], b.SID[:]), cmp.Compare(a.Seq, b.Seq))
	})
	// The filter holds for neighbours too: what it leaves out is not read.
	parts, err := s.read.SearchTexts(ctx, r.Tenant, &p.filter, more, nil, 1, blockBytes)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		if parts[i].Doc > at.mark.Horizon {
			continue // came after the first page
		}
		h := hitOf(&parts[i], nil)
		h.Score = share[place{h.SID, h.Seq}]
		hits = append(hits, h)
	}
	if r.Sort == SortRecent {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.doc, a.doc) })
	} else {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.doc, a.doc)) })
	}
	return hits, nil
}
