package retrieval

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

const (
	scanRows = 400
	// maxSpans bounds the places of an expression in a part.
	maxSpans = 16
	// maxShown bounds the bytes of what an expression matched in a snippet; a
	// longer match is shown by its beginning.
	maxShown = 2 << 10
)

// scan holds an expression against the parts, newest first, until the page is
// full or the time is over.
func (s *Searcher) scan(ctx context.Context, r *Request, p *plan, at cursor, out *Answer) error {
	var last struct {
		sid uuid.UUID
		seq int64
	}
	for {
		parts, err := s.read.SearchScan(ctx, r.Tenant, &p.filter, p.filler, at.mark, scanRows)
		if err != nil {
			return err
		}
		var hits []Hit
		looked := 0
		for i := range parts {
			part := &parts[i].SearchPart
			looked = i + 1
			at.mark.Doc = min(at.mark.Doc, part.Doc)
			if !parts[i].Fits || part.SID == last.sid && part.Seq == last.seq {
				continue
			}
			if h, ok := p.expression(part); ok {
				hits = append(hits, h)
				last.sid, last.seq = part.SID, part.Seq
				// The other parts of the message are right before this one.
				at.mark.Doc -= int64(part.Part)
			}
			if len(out.Hits)+len(hits) == r.Limit || !s.now().Before(p.until) {
				break
			}
		}
		if r.ActiveOnly && r.SessionKey == "" && len(r.Scopes) == 0 && len(hits) > 0 {
			if hits, err = s.only(ctx, r, hits); err != nil {
				return err
			}
		}
		out.Hits = append(out.Hits, hits...)
		done := len(parts) < scanRows && looked == len(parts)
		switch {
		case done:
			return nil
		case len(out.Hits) == r.Limit:
			out.Next = at.encode(r)
			return nil
		case !s.now().Before(p.until):
			out.Next, out.Partial = at.encode(r), true
			return nil
		}
	}
}

func (p *plan) expression(part *store.SearchPart) (Hit, bool) {
	var spans []search.Span
	for _, m := range p.expr.FindAllStringIndex(part.Text, maxSpans) {
		if m[1] > m[0] {
			to := m[1]
			if to-m[0] > maxShown {
				to = m[0] + maxShown
				for part.Text[to]&0xc0 == 0x80 {
					to--
				}
			}
			spans = append(spans, search.Span{From: m[0], To: to})
		}
	}
	if len(spans) == 0 {
		return Hit{}, false
	}
	return hitOf(part, spans), true
}
