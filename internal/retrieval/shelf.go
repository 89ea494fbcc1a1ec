package retrieval

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// shelf answers a search of an encrypted session, which no index may know: its
// texts were read from the log for this one search. It is a Reader, so what is a
// hit and how hits rank is decided as for any other session.
type shelf struct {
	Reader
	// parts are in the order of their docs.
	parts []store.SearchPart
	// seqs are the messages of each session, at their first part.
	seqs map[uuid.UUID][]standing
	// look has how often each part has each of the look-ups of the plan.
	look [][]int
}

// standing is where the parts of a message are: [from, to).
type standing struct {
	seq      int64
	from, to int
}

// newShelf takes parts in the order of their docs.
func newShelf(store Reader, parts []store.SearchPart, lookups [][]search.Lookup) *shelf {
	h := &shelf{Reader: store, parts: parts, seqs: map[uuid.UUID][]standing{}, look: make([][]int, len(parts))}
	for from := 0; from < len(parts); {
		p, to := &parts[from], from
		for to < len(parts) && parts[to].SID == p.SID && parts[to].Seq == p.Seq {
			to++
		}
		h.seqs[p.SID] = append(h.seqs[p.SID], standing{p.Seq, from, to})
		from = to
	}
	h.read(lookups)
	return h
}

// read counts the words of all parts, several at a time.
func (h *shelf) read(lookups [][]search.Lookup) {
	together(len(h.parts), readers, func(i int) bool {
		p := &h.parts[i]
		terms, length := search.Terms(p.Text)
		p.Length = length
		h.look[i] = countsOf(terms, lookups)
		return true
	})
}

// countsOf is how often terms, which are sorted, have each look-up in one of
// its forms.
func countsOf(terms []search.Term, lookups [][]search.Lookup) []int {
	out := make([]int, len(lookups))
	for i, forms := range lookups {
		for _, l := range forms {
			at, _ := slices.BinarySearchFunc(terms, l.Term, func(t search.Term, s string) int { return strings.Compare(t.Text, s) })
			for ; at < len(terms) && (terms[at].Text == l.Term || l.Prefix && strings.HasPrefix(terms[at].Text, l.Term)); at++ {
				out[i] += terms[at].Count
			}
		}
	}
	return out
}

// state is that of an index which has all that was read.
func (h *shelf) state() store.SearchIndexState {
	out := store.SearchIndexState{Parts: int64(len(h.parts))}
	for i := range h.parts {
		out.Doc = h.parts[i].Doc
		out.Length += int64(h.parts[i].Length)
	}
	return out
}

// SearchCounts implements Reader.
func (h *shelf) SearchCounts(_ context.Context, _ string, _ *store.SearchFilter, lookups [][]search.Lookup, horizon int64, _ int) ([]int64, error) {
	out := make([]int64, len(lookups))
	for i := range h.parts {
		for l, n := range h.look[i] {
			if n > 0 && h.parts[i].Doc <= horizon {
				out[l]++
			}
		}
	}
	return out, nil
}

// SearchAll implements Reader.
func (h *shelf) SearchAll(
	_ context.Context, _ string, f *store.SearchFilter, _ [][]search.Lookup, _ int, average float64, before store.SearchMark, _, limit int,
) ([]store.SearchFound, error) {
	found := h.all(f, before.Horizon, func(p int) (score float64) {
		for _, n := range h.look[p] {
			score += search.Saturate(float64(n), h.parts[p].Length, average, search.LengthAll)
		}
		return score
	})
	return best(found, before, limit), nil
}

// SearchNewest implements Reader.
func (h *shelf) SearchNewest(
	_ context.Context, _ string, f *store.SearchFilter, _ [][]search.Lookup, _ int, before store.SearchMark, limit int,
) ([]store.SearchFound, error) {
	found := h.all(f, before.Horizon, func(int) float64 { return 0 })
	before.Score = 0
	return best(found, before, limit), nil
}

// SearchAny implements Reader.
func (h *shelf) SearchAny(
	ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, weights []float64,
	counts []int64, parts int64, average float64, before store.SearchMark, most, limit int,
) ([]store.SearchFound, []int64, error) {
	if counts == nil {
		var err error
		if counts, err = h.SearchCounts(ctx, tenant, f, lookups, before.Horizon, most); err != nil {
			return nil, nil, err
		}
	}
	found := h.each(f, before.Horizon, func(_ standing, fitting []int) (score float64, ok bool) {
		for _, p := range fitting {
			sum := 0.0
			for l, n := range h.look[p] {
				if n > 0 {
					sum += weights[l] * search.IDF(counts[l], parts) * search.Saturate(1, h.parts[p].Length, average, search.LengthAll)
				}
			}
			score = max(score, sum)
		}
		return score, score > 0
	})
	return best(found, before, limit), counts, nil
}

// all finds messages that have every look-up, in whichever of their parts.
func (h *shelf) all(f *store.SearchFilter, horizon int64, score func(part int) float64) []store.SearchFound {
	return h.each(f, horizon, func(at standing, fitting []int) (top float64, ok bool) {
		for l := range h.look[at.from] {
			if !slices.ContainsFunc(h.look[at.from:at.to], func(counts []int) bool { return counts[l] > 0 }) {
				return 0, false
			}
		}
		for _, p := range fitting {
			top = max(top, score(p))
		}
		return top, true
	})
}

// each asks about every message that has parts which the filter lets through.
func (h *shelf) each(f *store.SearchFilter, horizon int64, ask func(at standing, fitting []int) (float64, bool)) []store.SearchFound {
	var out []store.SearchFound
	for sid, messages := range h.seqs {
		for _, at := range messages {
			var fitting []int
			for p := at.from; p < at.to; p++ {
				if h.parts[p].Doc <= horizon && fits(f, &h.parts[p]) {
					fitting = append(fitting, p)
				}
			}
			if len(fitting) == 0 {
				continue
			}
			if score, ok := ask(at, fitting); ok {
				out = append(out, store.SearchFound{SID: sid, Seq: at.seq, Doc: h.parts[fitting[0]].Doc, Score: score})
			}
		}
	}
	return out
}

// best are those behind a mark, by score, then the newer first.
func best(found []store.SearchFound, before store.SearchMark, limit int) []store.SearchFound {
	mark := rank{before.Score, before.Doc}
	found = slices.DeleteFunc(found, func(f store.SearchFound) bool { return !mark.before(rank{f.Score, f.Doc}) })
	slices.SortFunc(found, func(a, b store.SearchFound) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Doc, a.Doc))
	})
	return found[:min(len(found), limit)]
}

// SearchTexts implements Reader.
func (h *shelf) SearchTexts(
	_ context.Context, _ string, f *store.SearchFilter, found []store.SearchFound, lookups [][]search.Lookup, partsEach int, maxBytes int64,
) ([]store.SearchPart, error) {
	var out []store.SearchPart
	size := int64(0)
	for _, w := range found {
		at, ok := h.at(w.SID, w.Seq)
		if !ok {
			continue
		}
		n := 0
		for p := at.from; p < at.to && n < partsEach; p++ {
			has := len(lookups) == 0 || at.to-at.from == 1 || slices.ContainsFunc(h.look[p], func(n int) bool { return n > 0 })
			if !has || !fits(f, &h.parts[p]) {
				continue
			}
			if size >= maxBytes {
				return out, nil
			}
			out = append(out, h.parts[p])
			size += int64(len(h.parts[p].Text))
			n++
		}
	}
	return out, nil
}

// SearchNeighbours implements Reader.
func (h *shelf) SearchNeighbours(_ context.Context, _ string, f *store.SearchFilter, found []store.SearchFound) ([]store.SearchNeighbour, error) {
	var out []store.SearchNeighbour
	for i, w := range found {
		messages := h.seqs[w.SID]
		here, ok := slices.BinarySearchFunc(messages, w.Seq, bySeq)
		if !ok {
			continue
		}
		for _, place := range []int{-1, 1, 2} {
			at := here + place
			if at < 0 || at >= len(messages) {
				continue
			}
			for p := messages[at].from; p < messages[at].to; p++ {
				if fits(f, &h.parts[p]) {
					out = append(out, store.SearchNeighbour{Of: i, Place: place, Seq: messages[at].seq, Doc: h.parts[p].Doc})
					break
				}
			}
		}
	}
	return out, nil
}

// SearchScan implements Reader.
func (h *shelf) SearchScan(
	_ context.Context, _ string, f *store.SearchFilter, filler string, before store.SearchMark, limit int,
) ([]store.SearchScanned, error) {
	var out []store.SearchScanned
	for i := range slices.Backward(h.parts) {
		p := &h.parts[i]
		if len(out) < limit && p.Doc < before.Doc && p.Doc <= before.Horizon && fits(f, p) && strings.Contains(p.Text, filler) {
			out = append(out, store.SearchScanned{SearchPart: *p, Fits: true})
		}
	}
	return out, nil
}

func (h *shelf) at(sid uuid.UUID, seq int64) (standing, bool) {
	i, ok := slices.BinarySearchFunc(h.seqs[sid], seq, bySeq)
	if !ok {
		return standing{}, false
	}
	return h.seqs[sid][i], true
}

func bySeq(at standing, seq int64) int { return cmp.Compare(at.seq, seq) }

// fits is the store's search_fits.
func fits(f *store.SearchFilter, p *store.SearchPart) bool {
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, p.Kind)) &&
		(len(f.Roles) == 0 || slices.Contains(f.Roles, p.Role)) &&
		(f.Tool == "" || f.Tool == p.Tool) &&
		(f.Epoch == 0 || f.Epoch == p.Epoch) &&
		!p.At.Before(f.Since) && (f.Until.IsZero() || p.At.Before(f.Until)) &&
		p.Flags&f.Without == 0 &&
		(len(f.Sessions) == 0 || within(f.Sessions, p.SID, p.Seq))
}
