package search

import (
	"slices"
	"unicode/utf8"
)

// maxTerm is the bytes of a word that the index knows; two words that differ
// only behind it are told apart on the text.
const maxTerm = 64

// Term is an entry of the index.
type Term struct {
	Text string
	// Count is how often the text holds it.
	Count int
}

// Terms are the index entries of a text, sorted, and the number of its words
// and characters. Entries are whole words, their parts (getUserName: get,
// user, name), single characters and signs, and pairs of neighbours of these.
func Terms(text string) (terms []Term, length int) {
	counts := make(map[string]int, len(text)/8+1)
	var last Atom
	each(text, func(a Atom) {
		switch a.Kind {
		case Word:
			length++
			counts[clip(a.Term)]++
			for _, s := range subwords(text[a.From:a.To]) {
				if s != a.Term {
					counts[clip(s)]++
				}
			}
		default:
			if a.Kind == Char {
				length++
			}
			counts[a.Term]++
			if a.Glued && last.Kind == a.Kind {
				counts[last.Term+a.Term]++
			}
		}
		last = a
	})
	terms = make([]Term, 0, len(counts))
	for t, n := range counts {
		terms = append(terms, Term{Text: t, Count: n})
	}
	slices.SortFunc(terms, func(a, b Term) int {
		if a.Text < b.Text {
			return -1
		}
		return 1
	})
	return terms, length
}

// clip cuts a word to what the index knows of it.
func clip(s string) string {
	if len(s) <= maxTerm {
		return s
	}
	n := maxTerm
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
