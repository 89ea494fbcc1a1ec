package retrieval

import (
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
	weights := make([]float64, len(p.lookups))
	for i, owner := range p.owner {
		weights[i] = p.wants[owner].Weight
	}
	var counts []int64
	if len(at.counts) == len(p.lookups) {
		counts = at.counts
	}
	found, counts, err := s.read.SearchAny(ctx, r.Tenant, &p.filter, p.lookups, weights, counts, at.parts, at.average(), at.mark, newest, questionRows)
	if err != nil || len(found) == 0 {
		return err
	}
	at.counts = counts
	p.weigh(counts, at.parts)
	if found = at.again(found); len(found) == 0 {
		return nil
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
	hits = at.rest(r, hits)
	if len(hits) > r.Limit {
		hits = hits[:r.Limit]
		at.stop(&hits[r.Limit-1], found)
		out.Next = at.encode(r)
	}
	out.Hits, err = s.show(ctx, r, p, hits)
	return err
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
	// The filter holds for neighbours too.
	neighbours, err := s.read.SearchNeighbours(ctx, r.Tenant, &p.filter, around)
	if err != nil {
		return nil, err
	}
	share, beside := map[place]float64{}, map[place]int64{}
	for _, n := range neighbours {
		from := &best[n.Of]
		// A neighbour behind the hit has the hit before it.
		part := map[int]float64{-1: search.FromNext, 1: search.FromPrevious, 2: search.FromSecond}[n.Place]
		here := place{from.SID, n.Seq}
		share[here] += part * from.Score
		beside[here] = n.Doc
	}
	own := map[place]struct{}{}
	for i := range hits {
		here := place{hits[i].SID, hits[i].Seq}
		own[here] = struct{}{}
		hits[i].Score += share[here]
	}
	for here, n := range beside {
		if _, is := own[here]; !is && n <= at.mark.Horizon { // else it came after the first page
			hits = append(hits, Hit{SID: here.sid, Seq: here.seq, Score: share[here], doc: n, unread: true})
		}
	}
	if r.Sort == SortRecent {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.doc, a.doc) })
	} else {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.doc, a.doc)) })
	}
	return hits, nil
}

// show reads the neighbours among hits, of which nothing but the rank is known.
func (s *Searcher) show(ctx context.Context, r *Request, p *plan, hits []Hit) ([]Hit, error) {
	var unread []store.SearchFound
	for i := range hits {
		if hits[i].unread {
			unread = append(unread, store.SearchFound{SID: hits[i].SID, Seq: hits[i].Seq})
		}
	}
	if len(unread) == 0 {
		return hits, nil
	}
	parts, err := s.read.SearchTexts(ctx, r.Tenant, &p.filter, unread, nil, 1, blockBytes)
	if err != nil {
		return nil, err
	}
	read := make(map[place]*store.SearchPart, len(parts))
	for i := range parts {
		read[place{parts[i].SID, parts[i].Seq}] = &parts[i]
	}
	out := hits[:0]
	for _, h := range hits {
		if h.unread {
			part, is := read[place{h.SID, h.Seq}]
			if !is {
				continue // erased meanwhile
			}
			active, score := h.Active, h.Score
			h = hitOf(part, nil)
			h.Active, h.Score = active, score
		}
		out = append(out, h)
	}
	return out, nil
}
