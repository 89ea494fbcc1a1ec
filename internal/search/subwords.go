package search

import (
	"unicode"
	"unicode/utf8"
)

// maxSubwords bounds the parts of a word; a hash that falls into more has none.
const maxSubwords = 6

// subwords are the folded parts of a word that is written in humps or changes
// between letters and digits: getUserName, v2, HTTPServer. A word without
// such a change has none.
func subwords(word string) []string {
	if plain(word) {
		return nil
	}
	cuts := make([]int, 0, maxSubwords)
	var previous rune
	start := 0
	for i, r := range word {
		if i > start && previous != 0 && parts(previous, r, word[i+utf8.RuneLen(r):]) {
			if len(cuts) == maxSubwords-1 {
				return nil
			}
			cuts = append(cuts, i)
			start = i
		}
		previous = r
	}
	if len(cuts) == 0 {
		return nil
	}
	out := make([]string, 0, len(cuts)+1)
	from := 0
	for _, c := range append(cuts, len(word)) {
		if s := Fold(word[from:c]); s != "" {
			out = append(out, s)
		}
		from = c
	}
	return out
}

// plain reports small ASCII letters or digits alone, as most words are.
func plain(word string) bool {
	letters, digits := false, false
	for i := range len(word) {
		switch c := word[i]; {
		case 'a' <= c && c <= 'z', i == 0 && 'A' <= c && c <= 'Z':
			letters = true
		case '0' <= c && c <= '9':
			digits = true
		default:
			return false
		}
	}
	return letters != digits
}

// parts reports whether a new part begins at r.
func parts(previous, r rune, rest string) bool {
	switch {
	case unicode.IsDigit(previous) != unicode.IsDigit(r):
		return !unicode.IsMark(r)
	case unicode.IsLower(previous) && unicode.IsUpper(r):
		return true
	case unicode.IsUpper(previous) && unicode.IsUpper(r):
		next, _ := utf8.DecodeRuneInString(rest)
		return rest != "" && unicode.IsLower(next)
	}
	return false
}
