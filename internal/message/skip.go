package message

// nest remembers which containers are open: one bit each, so that text of a
// million brackets costs neither stack nor much memory.
type nest struct {
	bits  []uint64
	depth int
}

func (n *nest) push(object bool) {
	word, bit := n.depth/64, uint64(1)<<(n.depth%64)
	if word == len(n.bits) {
		n.bits = append(n.bits, 0)
	}
	if object {
		n.bits[word] |= bit
	} else {
		n.bits[word] &^= bit
	}
	n.depth++
}

func (n *nest) object() bool {
	top := n.depth - 1
	return n.bits[top/64]&(1<<(top%64)) != 0
}

// skip consumes any value, however deep, without recursion. A positive limit
// refuses more open containers than that.
func (s *scanner) skip(limit int) {
	var room [4]uint64
	open := nest{bits: room[:0]}
	for s.err == nil {
		// A value starts here.
		switch c := s.peek(); c {
		case '{', '[':
			if limit > 0 && open.depth >= limit {
				s.err = &InvalidError{Reason: "nested too deeply", Offset: s.pos, Limit: int64(limit)}
				return
			}
			s.pos++
			open.push(c == '{')
			switch next := s.peek(); {
			case next == closer(c):
				// Empty: closed below.
			case c == '{':
				s.name()
				continue
			default:
				continue
			}
		default:
			s.scalar(c)
		}
		// A value has ended: close what ends with it, or go to the next one.
		for s.err == nil {
			if open.depth == 0 {
				return
			}
			c := s.peek()
			if c == ',' {
				s.pos++
				if open.object() {
					s.name()
				}
				break
			}
			want := byte(']')
			if open.object() {
				want = '}'
			}
			if !s.take(want) {
				return
			}
			open.depth--
		}
	}
}

// name consumes a member's name and its colon.
func (s *scanner) name() []byte {
	key := s.str()
	s.take(':')
	return key
}

func closer(open byte) byte {
	if open == '{' {
		return '}'
	}
	return ']'
}

// members iterates over an object: after each next the caller consumes
// exactly one value.
type members struct {
	s     *scanner
	key   []byte
	begun bool
}

// object starts reading an object.
func (s *scanner) object() members {
	s.take('{')
	return members{s: s}
}

func (m *members) next() bool {
	if !m.s.advance('}', &m.begun) {
		return false
	}
	m.key = m.s.name()
	if m.s.err == nil && hasEscape(m.key) {
		m.key = []byte(unquote(m.key))
	}
	return m.s.err == nil
}

// elements iterates over an array: after each next the caller consumes exactly
// one value.
type elements struct {
	s     *scanner
	begun bool
}

// array starts reading an array.
func (s *scanner) array() elements {
	s.take('[')
	return elements{s: s}
}

func (e *elements) next() bool { return e.s.advance(']', &e.begun) }

// advance goes to the next item of a container, or over its end.
func (s *scanner) advance(end byte, begun *bool) bool {
	c := s.peek()
	if s.err != nil {
		return false
	}
	if c == end {
		s.pos++
		return false
	}
	if *begun {
		return s.take(',')
	}
	*begun = true
	return true
}
