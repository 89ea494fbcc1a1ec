package tokens

import "unicode/utf8"

// part is up to how many bytes are merged at once. Merging takes time in
// proportion to the square of the length, hence a limit.
const part = 128

// cut counts the tokens of a piece that is no token itself. A limit between
// two parts may hide a token more or less; one more is counted for it.
func cut(s string) int {
	n := 0
	for len(s) > part {
		end := part
		for end > part-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		n += merge(s[:end]) + 1
		s = s[end:]
	}
	return n + merge(s)
}

// merge counts what byte pair encoding leaves of s: it starts from bytes and
// joins, again and again, the two neighbours that make the token of lowest
// rank, the leftmost of equals. s has at most part bytes.
func merge(s string) int {
	var starts [part + 1]uint8
	var ranks [part + 1]uint32 // of the pair that starts here
	n := len(s)
	for i := range n {
		starts[i] = uint8(i)
		ranks[i] = none
		if i+2 <= n {
			ranks[i] = rank(s[i : i+2])
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
