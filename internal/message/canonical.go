package message

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest is how far Canonical follows nesting; what lies deeper is compared
// as it is spelled. Check refuses such bodies long before.
const deepest = 10_000

// Hash identifies a payload: two bodies that differ in the order of members,
// in blanks or in how characters are escaped have the same one; any other
// difference, the heartbeat flag too, changes it. It is the SHA-256 of the
// canonical JSON and one byte for the flag.
func Hash(body []byte, heartbeat bool) [32]byte {
	b := Canonical(make([]byte, 0, len(body)+1), body)
	if heartbeat {
		return sha256.Sum256(append(b, 1))
	}
	return sha256.Sum256(append(b, 0))
}

// Canonical appends body's canonical JSON to dst: members sorted by name,
// blanks dropped, number text as it is, strings with no escapes but for quote,
// backslash, control characters and lone surrogates (\ud800). Members of one
// name keep their order. What is no JSON is appended as it is.
func Canonical(dst, body []byte) []byte {
	c := canon{s: scanner{data: body}, out: dst}
	c.value(0)
	c.s.end()
	if c.s.err != nil {
		return append(dst, body...)
	}
	return c.out
}

type canon struct {
	s   scanner
	out []byte
	// open are the members so far of the objects that are being read.
	open []written
	// scratch holds members while they change places.
	scratch []byte
}

func (c *canon) value(depth int) {
	switch b := c.s.peek(); {
	case b == '{' && depth < deepest:
		c.object(depth)
	case b == '[' && depth < deepest:
		c.out = append(c.out, '[')
		sep := false
		for it := c.s.array(); it.next(); {
			if sep {
				c.out = append(c.out, ',')
			}
			sep = true
			c.value(depth + 1)
		}
		c.out = append(c.out, ']')
	case b == '"':
		c.str(c.s.str())
	default:
		c.out = append(c.out, c.s.span()...)
	}
}

// written is a member in out: its name ends at key, its value at end.
type written struct{ start, key, end int }

func (c *canon) object(depth int) {
	c.out = append(c.out, '{')
	first, base := len(c.out), len(c.open)
	sorted := true
	for m := c.s.object(); m.s.advance('}', &m.begun); {
		if len(c.open) > base {
			c.out = append(c.out, ',')
		}
		w := written{start: len(c.out)}
		c.str(c.s.name())
		w.key = len(c.out)
		c.out = append(c.out, ':')
		c.value(depth + 1)
		w.end = len(c.out)
		if n := len(c.open); n > base && sorted {
			sorted = bytes.Compare(c.key(c.open[n-1]), c.key(w)) <= 0
		}
		c.open = append(c.open, w)
	}
	if !sorted && c.s.err == nil {
		c.sort(first, c.open[base:])
	}
	c.open = c.open[:base]
	c.out = append(c.out, '}')
}

// sort puts the members that out holds from first on in order.
func (c *canon) sort(first int, list []written) {
	slices.SortStableFunc(list, func(a, b written) int { return bytes.Compare(c.key(a), c.key(b)) })
	c.scratch = c.scratch[:0]
	for i, w := range list {
		if i > 0 {
			c.scratch = append(c.scratch, ',')
		}
		c.scratch = append(c.scratch, c.out[w.start:w.end]...)
	}
	copy(c.out[first:], c.scratch)
}

// key is a member's name in canonical spelling, without quotes: a shorter name
// sorts before what it begins.
func (c *canon) key(w written) []byte { return c.out[w.start+1 : w.key-1] }

const hexDigits = "0123456789abcdef"

// str appends a string whose raw inside is given.
func (c *canon) str(raw []byte) {
	c.out = append(c.out, '"')
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			n = len(raw)
		}
		c.out = append(c.out, raw[:n]...)
		if raw = raw[n:]; len(raw) == 0 {
			break
		}
		r, size := codePoint(raw)
		raw = raw[size:]
		switch {
		case r == '"' || r == '\\':
			c.out = append(c.out, '\\', byte(r))
		case r < 0x20 || utf16.IsSurrogate(r):
			c.out = append(c.out, '\\', 'u',
				hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			c.out = utf8.AppendRune(c.out, r)
		}
	}
	c.out = append(c.out, '"')
}
