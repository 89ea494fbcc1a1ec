package tokens

// StatedError is how far an estimate may lie under the o200k_base count of the
// same text, in percent.
const StatedError = 1

// Text estimates the tokens of a text: the o200k_base count, but for pieces
// without a break of more than 128 bytes (no word, but perhaps a sentence of
// Chinese, or a long run of one sign), which are counted in parts and come out
// a little high. It allocates nothing and takes time in proportion to len(s): words
// without a break cost up to ten times what a text of words does.
func Text(s string) int {
	n := 0
	for i := 0; i < len(s); {
		end := next(s, i)
		if end-i == 1 || rank(s[i:end]) != none {
			n++
		} else {
			n += cut(s[i:end])
		}
		i = end
	}
	return n
}
