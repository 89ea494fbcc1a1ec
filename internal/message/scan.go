package message

import (
	"encoding/binary"
	"math/bits"
)

// scanner walks JSON text strictly (RFC 8259) without building values, so that
// a reader can take what it needs and step over the rest, a base64 image of
// megabytes too. The first error sticks and ends every loop; callers look at
// err once, at the end.
type scanner struct {
	data []byte
	pos  int
	err  error
}

func (s *scanner) fail(reason string) {
	if s.err == nil {
		s.err = &InvalidError{Reason: reason, Offset: s.pos}
	}
}

// peek skips blanks and tells the next byte; 0 at the end or after an error.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c after blanks.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.err != nil || s.pos >= len(s.data) {
		s.fail("expected " + string(rune(c)))
		return false
	}
	s.pos++
	return true
}

// end demands that nothing but blanks follows.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.pos < len(s.data) {
		s.fail("text after the value")
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain is how many leading bytes of b need no look inside a string: neither
// quote, backslash nor control character.
func plain(b []byte) int {
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		q := x ^ ones*'"'
		e := x ^ ones*'\\'
		hit := ((q-ones)&^q | (e-ones)&^e | (x-ones*0x20)&^x) & highs
		if hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return n
}

// str consumes a string and returns what stands between its quotes, escapes
// untouched.
func (s *scanner) str() []byte {
	if !s.take('"') {
		return nil
	}
	start := s.pos
	for {
		s.pos += plain(s.data[s.pos:])
		if s.pos >= len(s.data) {
			s.fail("string without end")
			return nil
		}
		switch s.data[s.pos] {
		case '"':
			raw := s.data[start:s.pos]
			s.pos++
			return raw
		case '\\':
			if !s.escape() {
				s.fail("bad escape in a string")
				return nil
			}
		default:
			s.fail("control character in a string")
			return nil
		}
	}
}

// escape consumes one escape sequence.
func (s *scanner) escape() bool {
	rest := s.data[s.pos:]
	if len(rest) < 2 {
		return false
	}
	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if len(rest) < 6 {
			return false
		}
		if _, ok := hex4(rest[2:6]); !ok {
			return false
		}
		s.pos += 6
		return true
	}
	return false
}

// hex4 reads four hex digits.
func hex4(b []byte) (uint16, bool) {
	var v uint16
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint16(c)
	}
	return v, true
}

// number consumes a number.
func (s *scanner) number() {
	digits := func() int {
		n := 0
		for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
			s.pos++
			n++
		}
		return n
	}
	at := func(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }
	if at('-') {
		s.pos++
	}
	ok := true
	if at('0') {
		s.pos++
	} else {
		ok = digits() > 0
	}
	if ok && at('.') {
		s.pos++
		ok = digits() > 0
	}
	if ok && (at('e') || at('E')) {
		s.pos++
		if at('+') || at('-') {
			s.pos++
		}
		ok = digits() > 0
	}
	if !ok {
		s.fail("bad number")
	}
}

func (s *scanner) literal(word string) {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		s.fail("bad value")
		return
	}
	s.pos += len(word)
}

// scalar consumes a value that is no container.
func (s *scanner) scalar(c byte) {
	switch c {
	case '"':
		s.str()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.number()
	}
}

// span consumes any value and returns its text.
func (s *scanner) span() []byte {
	s.peek()
	start := s.pos
	s.skip(0)
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos]
}
