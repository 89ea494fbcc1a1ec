package search

import (
	"unicode"
	"unicode/utf8"
)

// Kind is what an atom is made of.
type Kind uint8

// The kinds of atoms.
const (
	// Word is a run of letters, digits and their marks.
	Word Kind = iota
	// Char is one character of a script that is written without blanks.
	Char
	// Sign is any other character that is seen.
	Sign
)

// Atom is the smallest thing that can be looked for.
type Atom struct {
	// From and To are bytes of the text.
	From, To int
	Kind     Kind
	// Glued atoms follow the one before without a blank.
	Glued bool
	// Term is the folded text.
	Term string
}

// Atoms reads a text. Bytes that are no UTF-8 are signs, control characters
// are blanks.
func Atoms(text string) []Atom {
	out := make([]Atom, 0, len(text)/5+1)
	each(text, func(a Atom) { out = append(out, a) })
	return out
}

// each hands the atoms of a text over, in order.
func each(text string, see func(Atom)) {
	walk(text, 0, func(a Atom, raw bool) bool {
		if raw {
			a.Term = Fold(a.Term)
		}
		see(a)
		return true
	})
}

// walk hands the atoms of a text over from an atom's beginning on, until see
// says no. The term of a raw one is ASCII as the text has it: folding all of
// them is most of the work, and few are asked for.
func walk(text string, from int, see func(a Atom, raw bool) bool) {
	glued := false
	for i := from; i < len(text); {
		c := classOf(text[i:])
		switch c.class {
		case blank:
			glued = false
			i += c.size
		case skip:
			i += c.size
		case letter:
			end, ascii := wordEnd(text, i, c.size)
			a := Atom{From: i, To: end, Kind: Word, Glued: glued, Term: text[i:end]}
			if !ascii {
				a.Term = Fold(a.Term)
			}
			if !see(a, ascii) {
				return
			}
			glued, i = true, end
		default:
			end := i + c.size
			if c.size == 1 && (end == len(text) || text[end] < utf8.RuneSelf) {
				if !see(Atom{From: i, To: end, Kind: Sign, Glued: glued, Term: text[i:end]}, false) {
					return
				}
				glued, i = true, end
				continue
			}
			for end < len(text) {
				n := classOf(text[end:])
				if n.class != mark && !n.attaches {
					break
				}
				end += n.size
			}
			kind := Sign
			if c.class == char {
				kind = Char
			}
			after, goOn := spell(text, i, end, kind, glued, see)
			if !goOn {
				return
			}
			glued, i = after, end
		}
	}
}

// wordEnd is where the word ends whose first letter is at i, and whether it is
// ASCII.
func wordEnd(text string, i, size int) (end int, ascii bool) {
	end, ascii = i+size, size == 1
	for end < len(text) {
		if b := text[end]; b < utf8.RuneSelf {
			if asciiClasses[b] != letter {
				break
			}
			end++
			continue
		}
		n := classOf(text[end:])
		if n.class != letter && n.class != mark && (n.class != skip || !letterAfter(text[end+n.size:])) {
			break
		}
		end, ascii = end+n.size, false
	}
	return end, ascii
}

// spell hands over a character: as many atoms as its folded form has. glued is
// for what follows, goOn what see said.
func spell(text string, from, to int, kind Kind, before bool, see func(Atom, bool) bool) (glued, goOn bool) {
	folded := text[from:to]
	if to-from > 1 || folded[0] >= utf8.RuneSelf {
		folded = Fold(folded)
	}
	glued = before
	for i, r := range folded {
		size := utf8.RuneLen(r)
		if unicode.IsSpace(r) {
			glued = false
			continue
		}
		term := "\ufffd"
		if r != utf8.RuneError && i+size <= len(folded) {
			term = folded[i : i+size]
		}
		if !see(Atom{From: from, To: to, Kind: kind, Glued: glued, Term: term}, false) {
			return glued, false
		}
		glued = true
	}
	return glued, true
}

type class uint8

const (
	blank class = iota
	skip
	letter
	mark
	char
	sign
)

type classified struct {
	class class
	size  int
	// attaches: belongs to the character before it, though it is no mark.
	attaches bool
}

func classOf(s string) classified {
	if c := s[0]; c < utf8.RuneSelf {
		return classified{class: asciiClasses[c], size: 1}
	}
	r, size := utf8.DecodeRuneInString(s)
	out := classified{class: sign, size: size}
	switch {
	case unicode.IsSpace(r) || unicode.IsControl(r):
		out.class = blank
	case invisible(r):
		out.class = skip
	case unicode.IsMark(r):
		out.class = mark
		if thai(r) {
			out.class = char
		}
	case r == 0xff9e || r == 0xff9f || 0x1160 <= r && r <= 0x11ff:
		// Halfwidth voiced marks, and the later parts of a syllable in jamo.
		out.class, out.attaches = char, true
	case unbroken(r):
		out.class = char
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		out.class = letter
	}
	return out
}

var asciiClasses = func() (of [utf8.RuneSelf]class) {
	for c := range of {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			of[c] = letter
		case c <= ' ' || c == 0x7f:
			of[c] = blank
		default:
			of[c] = sign
		}
	}
	return of
}()

func letterAfter(s string) bool {
	for len(s) > 0 {
		c := classOf(s)
		if c.class != skip {
			return c.class == letter
		}
		s = s[c.size:]
	}
	return false
}

func thai(r rune) bool {
	return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// unbroken reports a character of a script that does not part its words.
func unbroken(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) ||
		r == 0x30fc || r == 0xff70 || thai(r)
}
