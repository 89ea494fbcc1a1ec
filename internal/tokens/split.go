package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is what the o200k_base pattern tells characters apart by.
type class uint8

const (
	other class = iota // punctuation, symbols, controls
	space              // blank, but no line break
	line               // \r \n
	digit              // \p{N}
	upper              // \p{Lu} \p{Lt}
	lower              // \p{Ll}
	both               // \p{Lm} \p{Lo}: stands with upper and lower case
	mark               // \p{M}: like both, but also like other
)

func (c class) letter() bool { return c >= upper }

// head and tail are the two parts of a word: [upper both]* [lower both]+.
func (c class) head() bool { return c == upper || c >= both }
func (c class) tail() bool { return c >= lower }

// punct is [^\s\p{L}\p{N}].
func (c class) punct() bool { return c == other || c == mark }

var ascii = func() (t [utf8.RuneSelf]class) {
	for i := range t {
		switch c := rune(i); {
		case c == '\r' || c == '\n':
			t[i] = line
		case c == ' ' || '\t' <= c && c <= '\f':
			t[i] = space
		case '0' <= c && c <= '9':
			t[i] = digit
		case 'A' <= c && c <= 'Z':
			t[i] = upper
		case 'a' <= c && c <= 'z':
			t[i] = lower
		}
	}
	return t
}()

// classify tells the class of the character at i and its width in bytes.
func classify(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, w := utf8.DecodeRuneInString(s[i:])
	return classOf(r), w
}

func classOf(r rune) class {
	switch {
	case 0x4E00 <= r && r <= 0x9FFF, 0xAC00 <= r && r <= 0xD7A3, 0x3041 <= r && r <= 0x3096, 0x30A1 <= r && r <= 0x30FA:
		return both // unified ideographs, hangul, kana
	case 0x430 <= r && r <= 0x45F:
		return lower
	case 0x400 <= r && r <= 0x42F:
		return upper
	case r == utf8.RuneError:
		return other
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return upper
	case unicode.IsLower(r) && unicode.Is(unicode.Ll, r):
		return lower
	case unicode.IsLetter(r):
		return both
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// next is the end of the piece that starts at i, as o200k_base's pattern cuts
// text. i must be less than len(s).
func next(s string, i int) int {
	c, w := classify(s, i)
	switch {
	case c == digit:
		return digits(s, i)
	case c.letter():
		// A mark may stand before a word like any other sign; tried first.
		if c == mark {
			if end := word(s, i+w); end > 0 {
				return end
			}
		}
		return word(s, i)
	case c == line:
		return blanks(s, i)
	}
	if end := word(s, i+w); end > 0 {
		return end
	}
	if c == space {
		if s[i] == ' ' && i+1 < len(s) {
			if c, _ := classify(s, i+1); c.punct() {
				return signs(s, i+1)
			}
		}
		return blanks(s, i)
	}
	return signs(s, i)
}

// word is the end of the word at i, or 0 where none is.
func word(s string, i int) int {
	start, lastBoth := i, 0
	for i < len(s) {
		c, w := classify(s, i)
		if !c.head() {
			if c == lower {
				return contraction(s, tail(s, i))
			}
			break
		}
		i += w
		if c != upper {
			lastBoth = i
		}
	}
	if lastBoth > 0 {
		i = lastBoth
	}
	if i == start {
		return 0
	}
	return contraction(s, i)
}

func tail(s string, i int) int {
	for i < len(s) {
		if c := s[i]; 'a' <= c && c <= 'z' {
			i++
			continue
		}
		c, w := classify(s, i)
		if !c.tail() {
			break
		}
		i += w
	}
	return i
}

// contraction steps over 's 't 're 've 'm 'll 'd.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	return i
}

func digits(s string, i int) int {
	for n := 0; n < 3 && i < len(s); n++ {
		c, w := classify(s, i)
		if c != digit {
			break
		}
		i += w
	}
	return i
}

func signs(s string, i int) int {
	for i < len(s) {
		c, w := classify(s, i)
		if !c.punct() {
			break
		}
		i += w
	}
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}

// blanks is the end of a run of blanks: its first line breaks, else all but
// the last blank (which goes with what follows), else the only one. The
// pattern's \s*[\r\n]+ would go on to the run's last line break, but not every
// tokenizer does; stopping early counts a little more, never less.
func blanks(s string, i int) int {
	start, before := i, i
	for i < len(s) {
		c, w := classify(s, i)
		switch {
		case c == line:
			for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
				i++
			}
			return i
		case c != space:
			if before > start {
				return before
			}
			return i
		}
		before = i
		i += w
	}
	return i
}
