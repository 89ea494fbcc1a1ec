package search

import "math/bits"

// sieve tells of an ASCII word whether it may be one of some terms, from its
// first letter and its length alone. It says yes too often, never no wrongly.
type sieve struct {
	// lengths has a bit for each length of the terms with a first letter; the
	// last bit is for all from 63 on.
	lengths [256]uint64
}

func (s *sieve) term(t string) {
	s.lengths[t[0]] |= 1 << min(len(t), 63)
}

// prefix lets every word through that is as long as t or longer.
func (s *sieve) prefix(t string) {
	s.lengths[t[0]] |= ^uint64(0) << min(len(t), 63)
}

func (s *sieve) has(word string) bool {
	return bits.RotateLeft64(s.lengths[lowerASCII(word[0])], -min(len(word), 63))&1 == 1
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
