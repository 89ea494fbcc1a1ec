package tokens

import (
	"math"
	"unicode/utf8"
)

// part is up to how many bytes are merged at once: a multiple of block. Merging
// takes more time a byte the longer it is, hence a limit.
const part = 128

// cut counts the tokens of a piece that is no token itself. A limit between
// two parts may hide a token more or less; one more is counted for it.
func cut(s string) int {
	n, before, same := 0, "", 0
	for len(s) > part {
		end := part
		for end > part-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		// Runs of one sign, and what else repeats itself, are merged once.
		if s[:end] != before {
			before, same = s[:end], merge(s[:end])
		}
		n += same + 1
		s = s[end:]
	}
	return n + merge(s)
}

// merge counts what byte pair encoding leaves of s: it starts from bytes and
// joins, again and again, the two neighbours that make the token of lowest
// rank, the leftmost of equals. s has at most part bytes.
func merge(s string) int {
	if len(s) <= short {
		return mergeShort(s)
	}
	return mergeLong(s)
}

// short is up to where moving what is behind a joint costs less than to keep
// count of it.
const short = 24

func mergeShort(s string) int {
	var starts [short + 1]uint8
	var ranks [short]uint32 // of the pair that starts here
	n := len(s)
	for i := range n {
		starts[i] = uint8(i)
		ranks[i] = none
		if i+2 <= n {
			ranks[i] = rankOfPair[uint16(s[i])<<8|uint16(s[i+1])]
		}
	}
	starts[n] = uint8(n)
	for n > 1 {
		best, at := uint32(none), 0
		for i, r := range ranks[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == none {
			break
		}
		copy(starts[at+1:n], starts[at+2:n+1])
		copy(ranks[at+1:n-1], ranks[at+2:n])
		n--
		pair := func(i int) uint32 {
			if i+2 > n {
				return none
			}
			return rank(s[starts[i]:starts[i+2]])
		}
		ranks[at] = pair(at)
		if at > 0 {
			ranks[at-1] = pair(at - 1)
		}
	}
	return n
}

const (
	// block is how many places share the least of their keys.
	block  = 16
	blocks = part / block
	// A key is the rank of the pair that starts at a place, and behind it the place:
	// of equal ranks the leftmost is the least. never is greater than any of them.
	placeBits = 7
	never     = math.MaxUint32
)

// pairs is a text while it is merged. A place is where a token starts, or has
// started: then its key is never.
type pairs struct {
	s     string
	keys  [part]uint32
	least [blocks]uint32
	// next and prev are where the tokens beside one start; both count from 1 and
	// end with 0 and len(s)+1.
	next, prev [part + 2]uint8
}

// mergeLong asks for the least of a few blocks instead of all pairs.
func mergeLong(s string) int {
	n := len(s)
	p := pairs{s: s}
	for i := range p.keys {
		p.keys[i] = never
	}
	for i := range n - 1 {
		if r := rankOfPair[uint16(s[i])<<8|uint16(s[i+1])]; r != none {
			p.keys[i] = r<<placeBits | uint32(i)
		}
	}
	for i := range n + 2 {
		p.next[i], p.prev[i] = uint8(i+1), uint8(i-1)
	}
	for b := range p.least {
		p.renew(b)
	}
	for {
		first := uint32(never)
		for _, k := range p.least {
			first = min(first, k)
		}
		if first == never {
			return n
		}
		p.join(int(first & (part - 1)))
		n--
	}
}

// join makes one token of that at a place and the next.
func (p *pairs) join(at int) {
	gone := p.next[at+1]
	after := p.next[gone]
	p.next[at+1], p.prev[after] = after, uint8(at+1)
	p.keys[gone-1] = never
	p.look(at)
	b := at / block
	p.renew(b)
	if c := int(gone-1) / block; c != b {
		p.renew(c)
	}
	if before := int(p.prev[at+1]) - 1; before >= 0 {
		p.look(before)
		p.renew(before / block)
	}
}

// look finds the key of the pair that starts at a place.
func (p *pairs) look(at int) {
	mid := p.next[at+1]
	p.keys[at] = never
	if int(mid) > len(p.s) {
		return
	}
	if r := rank(p.s[at : p.next[mid]-1]); r != none {
		p.keys[at] = r<<placeBits | uint32(at)
	}
}

func (p *pairs) renew(b int) {
	k := (*[block]uint32)(p.keys[b*block:])
	p.least[b] = min(
		min(k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7]),
		min(k[8], k[9], k[10], k[11], k[12], k[13], k[14], k[15]),
	)
}
