package retrieval

import (
	"cmp"
	"context"
	"slices"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// maxCount bounds how often a unit is counted in a part.
const maxCount = 32

// collect fills a page: block by block, each found by the index and decided and
// ranked on the text.
func (s *Searcher) collect(ctx context.Context, r *Request, p *plan, at cursor, out *Answer) error {
	if len(at.counts) != len(p.lookups) {
		var err error
		if at.counts, err = s.read.SearchCounts(ctx, r.Tenant, &p.filter, p.lookups, at.mark.Horizon, newest); err != nil {
			return err
		}
	}
	p.weigh(at.counts, at.parts)
	for {
		block, err := s.find(ctx, r, p, at)
		if err != nil || len(block) == 0 {
			return err
		}
		found := at.again(block)
		last := len(found) == len(block) && len(block) < blockRows
		hits, seen, err := s.decide(ctx, r, p, at, found)
		if err != nil {
			return err
		}
		if r.ActiveOnly && r.SessionKey == "" && len(r.Scopes) == 0 {
			if hits, err = s.only(ctx, r, hits); err != nil {
				return err
			}
		}
		rest := at.rest(r, hits)
		if room := r.Limit - len(out.Hits); len(rest) > room {
			out.Hits = append(out.Hits, rest[:room]...)
			at.stop(&rest[room-1], found[:seen])
			out.Next = at.encode(r)
			return nil
		}
		out.Hits = append(out.Hits, rest...)
		if last && seen == len(found) {
			return nil
		}
		if seen > 0 {
			at.next(found[seen-1])
		} else {
			at.next(store.SearchFound{Score: at.end.score, Doc: at.end.doc}) // all of it was erased
		}
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
	if len(found) == 0 {
		return nil, 0, nil
	}
	parts, err := s.read.SearchTexts(ctx, r.Tenant, &p.filter, found, p.lookups, partsEach, blockBytes)
	if err != nil {
		return nil, 0, err
	}
	order := make(map[place]int, len(found))
	for i, f := range found {
		order[place{f.SID, f.Seq}] = i
	}
	messages, size := byMessage(parts)
	if size >= blockBytes && len(messages) > 1 && order[messages[len(messages)-1].place]+1 < len(found) {
		messages = messages[:len(messages)-1] // its parts may not all be here; the next block begins with it
	}
	if size < blockBytes || len(messages) == 0 {
		seen = len(found)
	} else {
		seen = order[messages[len(messages)-1].place] + 1
	}
	all, err := p.hits(ctx, messages, size, r.Match, at.average())
	if err != nil {
		return nil, 0, err
	}
	for i := range all {
		if all[i].Score > 0 {
			all[i].doc = found[order[messages[i].place]].Doc
			hits = append(hits, all[i])
		}
	}
	if r.Sort == SortRelevance {
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.doc, a.doc)) })
	}
	return hits, max(seen, 1), nil
}

// texts are the parts of one message.
type texts struct {
	place
	parts []store.SearchPart
}

// byMessage takes the parts of each message together; size is of all texts, in bytes.
func byMessage(parts []store.SearchPart) (out []texts, size int64) {
	for i := 0; i < len(parts); {
		here := place{parts[i].SID, parts[i].Seq}
		end := i
		for end < len(parts) && parts[end].SID == here.sid && parts[end].Seq == here.seq {
			size += int64(len(parts[end].Text))
			end++
		}
		out = append(out, texts{here, parts[i:end]})
		i = end
	}
	return out, size
}

// alone is how many bytes of text are not worth a second goroutine.
const alone = 128 << 10

// hits holds messages against the wants, several at a time where they are
// much text. One without a score is no hit.
func (p *plan) hits(ctx context.Context, messages []texts, size int64, match Match, average float64) ([]Hit, error) {
	out := make([]Hit, len(messages))
	together(len(messages), min(int(size/alone), readers), func(i int) bool {
		if ctx.Err() != nil {
			return false
		}
		if h, ok := p.hit(messages[i].parts, match, average); ok {
			out[i] = h
		}
		return true
	})
	return out, ctx.Err()
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
		Epoch: p.Epoch, At: p.At, Text: p.Text, Tokens: p.Tokens, doc: p.Doc, spans: spans,
	}
}
