package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold is the form in which words are compared: compatibility forms made
// plain (ｆｕｌｌ, ﬁ), lower case, and without the accents of Latin, Greek and
// Cyrillic. Marks that are letters of their script (Devanagari vowels, the
// voiced sound of kana) stay.
func Fold(s string) string {
	if folded, ok := foldASCII(s); ok {
		return folded
	}
	s = cases.Fold().String(norm.NFKC.String(s))
	s = norm.NFD.String(s)
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case accent(r) || invisible(r):
		case r == '\u2019' || r == '\u02bc':
			b.WriteByte('\'')
		default:
			b.WriteRune(r)
		}
	}
	// A second folding: what the first one composed may fold further.
	return cases.Fold().String(norm.NFKC.String(b.String()))
}

// foldASCII folds what holds ASCII only, without a copy where nothing changes.
func foldASCII(s string) (string, bool) {
	upper := false
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			return "", false
		}
		upper = upper || 'A' <= c && c <= 'Z'
	}
	if upper {
		return strings.ToLower(s), true
	}
	return s, true
}

func accent(r rune) bool { return 0x0300 <= r && r <= 0x036f }

// invisible signs neither part nor join: joiners, soft hyphens, variation
// selectors, byte order marks.
func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef
}
