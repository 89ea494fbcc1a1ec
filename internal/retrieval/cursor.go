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
// a block they are in the exact order.
type cursor struct {
	// mark is where the block begins, and what the first page saw of the index.
	mark store.SearchMark
	// skip is how many hits of the block were shown.
	skip int64
	// parts and length are the sums that the first page ranked by.
	parts, length int64
}

const cursorVersion = 1

func start(state store.SearchIndexState) cursor {
	return cursor{
		mark:  store.SearchMark{Score: math.MaxFloat64, Doc: math.MaxInt64, Horizon: state.Doc},
		parts: state.Parts, length: state.Length,
	}
}

// encode binds the cursor to its request.
func (c cursor) encode(r *Request) string {
	b := []byte{cursorVersion}
	b = append(b, fingerprint(r)...)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.mark.Score))
	for _, n := range []int64{c.mark.Doc, c.mark.Horizon, c.skip, c.parts, c.length} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decode(r *Request) (cursor, error) {
	bad := &contextengine.InvalidError{Field: "after", Reason: "is no cursor of this search"}
	b, err := base64.RawURLEncoding.Strict().DecodeString(r.After)
	if err != nil || len(b) < 17 || b[0] != cursorVersion || string(b[1:9]) != string(fingerprint(r)) {
		return cursor{}, bad
	}
	c := cursor{mark: store.SearchMark{Score: math.Float64frombits(binary.BigEndian.Uint64(b[9:17]))}}
	if math.IsNaN(c.mark.Score) {
		return cursor{}, bad
	}
	b = b[17:]
	for _, to := range []*int64{&c.mark.Doc, &c.mark.Horizon, &c.skip, &c.parts, &c.length} {
		n, size := binary.Uvarint(b)
		if size <= 0 || int64(n) < 0 {
			return cursor{}, bad
		}
		*to, b = int64(n), b[size:]
	}
	if len(b) > 0 {
		return cursor{}, bad
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
