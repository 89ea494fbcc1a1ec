package retrieval

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

const (
	// scanRows are read at once, fillerRows where the database knows a text that
	// every match holds and sends the parts alone that have it.
	scanRows   = 400
	fillerRows = 2000
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
	rows := scanRows
	if p.filler != "" {
		rows = fillerRows
	}
	for {
		parts, err := s.read.SearchScan(ctx, r.Tenant, &p.filter, p.filler, at.mark, rows)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var hits []Hit
		tried := s.expressions(ctx, p, parts)
		looked := 0
		for i := range parts {
			part := &parts[i].SearchPart
			if !tried[i].done {
				break // the time is over
			}
			looked = i + 1
			at.mark.Doc = min(at.mark.Doc, part.Doc)
			if tried[i].hit == nil || part.SID == last.sid && part.Seq == last.seq {
				continue
			}
			hits = append(hits, *tried[i].hit)
			last.sid, last.seq = part.SID, part.Seq
			// The other parts of the message are right before this one.
			at.mark.Doc -= int64(part.Part)
			if len(out.Hits)+len(hits) == r.Limit {
				break
			}
		}
		if r.ActiveOnly && r.SessionKey == "" && len(r.Scopes) == 0 && len(hits) > 0 {
			if hits, err = s.only(ctx, r, hits); err != nil {
				return err
			}
		}
		out.Hits = append(out.Hits, hits...)
		done := len(parts) < rows && looked == len(parts)
		switch {
		case done:
			return nil
		case len(out.Hits) == r.Limit:
			out.Next = at.encode(r)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !s.now().Before(p.until):
			out.Next, out.Partial = at.encode(r), true
			return nil
		}
	}
}

// attempt is what an expression came to on a part.
type attempt struct {
	hit  *Hit
	done bool
}

// expressions holds the expression against parts, several at a time, from the
// first on until the time is over: one part may take a bad expression as long as
// thousands take a good one. At least the first is tried, so that a search gets on.
func (s *Searcher) expressions(ctx context.Context, p *plan, parts []store.SearchScanned) []attempt {
	out := make([]attempt, len(parts))
	together(len(parts), readers, func(i int) bool {
		if i > 0 && (ctx.Err() != nil || !s.now().Before(p.until)) {
			return false
		}
		if parts[i].Fits {
			if h, ok := p.expression(&parts[i].SearchPart); ok {
				out[i].hit = &h
			}
		}
		out[i].done = true
		return true
	})
	return out
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
