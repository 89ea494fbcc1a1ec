package retrieval

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

// cursor is a place in the hits of a request. Hits are found in blocks; within
// a block they are in the exact order. A block is found again for each page that
// begins in it, and what was erased meanwhile moves nothing: the place is that of
// a hit, not a count of hits, and all that the rank depends on comes along.
type cursor struct {
	// mark is where the block begins, and what the first page saw of the index.
	mark store.SearchMark
	// inside: the page begins in the middle of a block, behind the hit shown; end
	// is the last that the block has.
	inside     bool
	shown, end rank
	// parts and length are the sums that the first page ranked by, counts is in how
	// many parts each look-up was.
	parts, length int64
	counts        []int64
}

// rank is a place in an order: by the score, then the newer first.
type rank struct {
	score float64
	doc   int64
}

// before tells whether r comes before o.
func (r rank) before(o rank) bool {
	return r.score > o.score || r.score == o.score && r.doc > o.doc
}

const cursorVersion = 2

func start(state store.SearchIndexState) cursor {
	return cursor{
		mark:  store.SearchMark{Score: math.MaxFloat64, Doc: math.MaxInt64, Horizon: state.Doc},
		parts: state.Parts, length: state.Length,
	}
}

// rest is what of a block's hits comes behind the one that was shown last.
func (c *cursor) rest(r *Request, hits []Hit) []Hit {
	if !c.inside {
		return hits
	}
	for i := range hits {
		if r.Sort == SortRecent && hits[i].doc < c.shown.doc || r.Sort != SortRecent && c.shown.before(hits[i].rank()) {
			return hits[i:]
		}
	}
	return nil
}

// stop is where the next page goes on: behind a hit of the block.
func (c *cursor) stop(last *Hit, found []store.SearchFound) {
	end := found[len(found)-1]
	c.inside, c.shown, c.end = true, last.rank(), rank{end.Score, end.Doc}
}

// again cuts a block that was found again to what it was: erasures let others
// come up to its end.
func (c *cursor) again(found []store.SearchFound) []store.SearchFound {
	for i := range found {
		if c.inside && c.end.before(rank{found[i].Score, found[i].Doc}) {
			return found[:i]
		}
	}
	return found
}

// next moves to the block behind a message.
func (c *cursor) next(last store.SearchFound) {
	c.mark.Score, c.mark.Doc, c.inside = last.Score, last.Doc, false
}

// encode binds the cursor to its request.
func (c *cursor) encode(r *Request) string {
	b := []byte{cursorVersion}
	b = append(b, fingerprint(r)...)
	inside := int64(0)
	if c.inside {
		inside = 1
	}
	for _, f := range []float64{c.mark.Score, c.shown.score, c.end.score} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(f))
	}
	for _, n := range append([]int64{inside, c.mark.Doc, c.mark.Horizon, c.shown.doc, c.end.doc, c.parts, c.length}, c.counts...) {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decode(r *Request) (cursor, error) {
	bad := &contextengine.InvalidError{Field: "after", Reason: "is no cursor of this search"}
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.After)
	const floats = 9
	if err != nil || len(b) < floats+24 || b[0] != cursorVersion || string(b[1:floats]) != string(fingerprint(r)) {
		return cursor{}, bad
	}
	var c cursor
	for i, to := range []*float64{&c.mark.Score, &c.shown.score, &c.end.score} {
		if *to = math.Float64frombits(binary.BigEndian.Uint64(b[floats+8*i:])); math.IsNaN(*to) {
			return cursor{}, bad
		}
	}
	b = b[floats+24:]
	var all []int64
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || int64(n) < 0 {
			return cursor{}, bad
		}
		all, b = append(all, int64(n)), b[size:]
	}
	const fixed = 7
	if len(all) < fixed || all[0] > 1 {
		return cursor{}, bad
	}
	c.inside = all[0] == 1
	c.mark.Doc, c.mark.Horizon, c.shown.doc, c.end.doc, c.parts, c.length = all[1], all[2], all[3], all[4], all[5], all[6]
	if len(all) > fixed {
		c.counts = all[fixed:]
	}
	return c, nil
}

// fingerprint is the same for pages of one search.
func fingerprint(r *Request) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %v %q %q %v %v %v %q %d %d %d %v %d %q",
		r.Tenant, r.Query, r.Regex, r.Match, r.SessionKey, r.Scopes, r.Kinds, r.Roles, r.Tool, r.Epoch,
		r.Since.UnixNano(), r.Until.UnixNano(), r.ActiveOnly, r.Without, r.Sort))
	return sum[:8]
}
