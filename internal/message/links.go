package message

import (
	"encoding/binary"
	"errors"
)

// ErrBadLinks: bytes that EncodeLinks did not write.
var ErrBadLinks = errors.New("message: malformed links")

// EncodeLinks packs the ids of calls and results into the form they are stored
// in: the number of calls, each id with its length before it, then the same
// for results; numbers are unsigned varints. Ids may hold any bytes. It
// returns nil where there are no ids.
func EncodeLinks(f Facts) []byte {
	if len(f.Calls) == 0 && len(f.Results) == 0 {
		return nil
	}
	var b []byte
	for _, ids := range [...][]string{f.Calls, f.Results} {
		b = binary.AppendUvarint(b, uint64(len(ids)))
		for _, id := range ids {
			b = binary.AppendUvarint(b, uint64(len(id)))
			b = append(b, id...)
		}
	}
	return b
}

// DecodeLinks unpacks what EncodeLinks packed.
func DecodeLinks(b []byte) (calls, results []string, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	if calls, b, err = decodeIDs(b); err != nil {
		return nil, nil, err
	}
	if results, b, err = decodeIDs(b); err != nil {
		return nil, nil, err
	}
	if len(b) != 0 {
		return nil, nil, ErrBadLinks
	}
	return calls, results, nil
}

func decodeIDs(b []byte) (ids []string, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	// Every id takes a byte at least: a larger count is a lie, and must not
	// make us allocate for it.
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, ErrBadLinks
	}
	b = b[w:]
	if n > 0 {
		ids = make([]string, 0, n)
	}
	for range n {
		size, w := binary.Uvarint(b)
		if w <= 0 || size > uint64(len(b)-w) {
			return nil, nil, ErrBadLinks
		}
		ids = append(ids, string(b[w:w+int(size)]))
		b = b[w+int(size):]
	}
	return ids, b, nil
}
