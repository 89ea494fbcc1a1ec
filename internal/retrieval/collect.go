package retrieval

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// maxCount bounds how often a unit is counted in a part.
const maxCount = 32

// collect fills a page: block by block, each found by the index and decided and
// ranked on the text.
func (s *Searcher) collect(ctx context.Context, r *Request, p *plan, at cursor, out *Answer) error {
	if err := s.weigh(ctx, r.Tenant, p, at); err != nil {
		return err
	}
	for {
		found, err := s.find(ctx, r, p, at)
		if err != nil || len(found) == 0 {
			return err
		}
		hits, seen, err := s.decide(ctx, r, p, at, found)
		if err != nil {
			return err
		}
		if r.ActiveOnly && r.SessionKey == "" && len(r.Scopes) == 0 {
			if hits, err = s.only(ctx, r, hits); err != nil {
				return err
			}
		}
		rest := hits[min(at.skip, int64(len(hits))):]
		if room := r.Limit - len(out.Hits); len(rest) > room {
			out.Hits = append(out.Hits, rest[:room]...)
			at.skip += int64(room)
			out.Next = at.encode(r)
			return nil
		}
		out.Hits = append(out.Hits, rest...)
		if seen == len(found) && len(found) < blockRows {
			return nil
		}
		last := found[seen-1]
		at.mark.Score, at.mark.Doc, at.skip = last.Score, last.Doc, 0
		if len(out.Hits) == r.Limit || !s.now().Before(p.until) {
			out.Next = at.encode(r)
			out.Partial = len(out.Hits) < r.Limit
			return nil
		}
	}
}

func (s *Searcher) find(ctx context.Context, r *Request, p *plan, at cursor) ([]store.SearchFound, error) {
	if r.Sort == SortRecent {
		return s.read.SearchNewest(ctx, r.Tenant, &p.filter, p.lookups, p.rarest, at.mark, blockRows)
	}
	return s.read.SearchAll(ctx, r.Tenant, &p.filter, p.lookups, p.rarest, at.average(), at.mark, newest, blockRows)
}

// decide reads the texts of what was found, as far as the bytes reach, and
// makes hits of what holds what was asked for. seen is how much was looked at.
func (s *Searcher) decide(ctx context.Context, r *Request, p *plan, at cursor, found []store.SearchFound) (hits []Hit, seen int, err error) {
	parts, err := s.read.SearchTexts(ctx, r.Tenant, &p.filter, found, p.lookups, partsEach, blockBytes)
	if err != nil {
		return nil, 0, err
	}
	type key struct {
		sid uuid.UUID
		seq int64
	}
	order := make(map[key]int, len(found))
	for i, f := range found {
		order[key{f.SID, f.Seq}] = i
	}
	size := int64(0)
	for i := 0; i < len(parts); {
		end := i + 1
		for end < len(parts) && parts[end].SID == parts[i].SID && parts[end].Seq == parts[i].Seq {
			end++
		}
		for _, q := range parts[i:end] {
			size += int64(len(q.Text))
		}
		n := order[key{parts[i].SID, parts[i].Seq}]
		if size >= blockBytes && end == len(parts) && i > 0 && n+1 < len(found) {
			break // its parts may not all be here; the next block begins with it
		}
		seen = n + 1
		if h, ok := p.hit(parts[i:end], r.Match, at.average()); ok {
			h.doc = found[n].Doc
			hits = append(hits, h)
		}
		i = end
	}
	if size < blockBytes {
		seen = len(found)
	}
	if r.Sort == SortRelevance {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.doc, a.doc)) })
	}
	return hits, max(seen, 1), nil
}

// hit holds a message's parts against the wants.
func (p *plan) hit(parts []store.SearchPart, match Match, average float64) (Hit, bool) {
	best := make([]float64, len(p.wants))
	var hit Hit
	top := 0.0
	for i := range parts {
		part := &parts[i]
		scores, spans := p.score(part, match, average)
		sum := 0.0
		for w, s := range scores {
			best[w] = max(best[w], s)
			sum += s
		}
		if sum > top {
			top, hit = sum, hitOf(part, spans)
		}
	}
	if top == 0 || match == MatchAll && slices.Contains(best, 0) {
		return Hit{}, false
	}
	for _, score := range best {
		hit.Score += score
	}
	return hit, true
}

// score is what a part has of each want, 0 where it has nothing of it, and
// where that stands. For a question, who speaks is part of the text.
func (p *plan) score(part *store.SearchPart, match Match, average float64) (scores []float64, spans []search.Span) {
	scores, counts := make([]float64, len(p.wants)), make([]int, len(p.wants))
	for f, at := range p.matcher.Find(part.Text, maxCount) {
		counts[p.form[f]] += len(at)
		spans = append(spans, at...)
	}
	length := search.LengthAll
	if match == MatchAny {
		length = search.LengthAny
		for f, at := range p.matcher.Find(part.Speaker, 1) {
			counts[p.form[f]] += len(at)
		}
	}
	for w, n := range counts {
		// What is in nearly every text still counts as found.
		scores[w] = max(p.idf[w], 1e-6) * search.Saturate(float64(n), part.Length, average, length)
	}
	return scores, spans
}

func hitOf(p *store.SearchPart, spans []search.Span) Hit {
	return Hit{
		SessionKey: p.SessionKey, SID: p.SID, Seq: p.Seq, Kind: p.Kind, Role: p.Role, Flags: p.Flags, Tool: p.Tool,
		Epoch: p.Epoch, At: p.At, Snippet: search.Cut(p.Text, spans), Text: p.Text, Tokens: p.Tokens, doc: p.Doc,
	}
}
