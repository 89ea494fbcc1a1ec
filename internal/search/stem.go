package search

import (
	"slices"
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stem is what the English forms of a word share; a word that is not plain
// ASCII letters is its own stem.
func Stem(word string) string {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

var endings = []string{"", "s", "es", "ed", "d", "ing", "ly", "er", "ers", "e", "al", "ment", "ments", "ion", "ions", "ation", "ies", "ied", "y", "ness", "ful", "or"}

// Forms are the other forms of an English word: those of the usual endings
// that have the same stem.
func Forms(word string) []string {
	if len(word) < 3 {
		return nil
	}
	stem := Stem(word)
	roots := []string{stem, word}
	if s, ok := strings.CutSuffix(stem, "i"); ok {
		roots = append(roots, s, s+"y")
	}
	if n := len(stem); stem[n-1] != 'i' {
		roots = append(roots, stem+stem[n-1:])
	}
	var out []string
	for _, r := range roots {
		for _, e := range endings {
			if f := r + e; f != word && !slices.Contains(out, f) && Stem(f) == stem {
				out = append(out, f)
			}
		}
	}
	return out
}

// questionWord reports a word that is in questions for their grammar.
func questionWord(w string) bool {
	_, ok := slices.BinarySearch(questionWords, w)
	return ok
}

var questionWords = func() []string {
	words := strings.Fields(`a about after all am an and any are as at be been before being both but by can could d did do does doing
		for from had has have having he her hers him his how i if in into is it its just kind ll m many may me might more most much my no not of on or
		our re s shall she should so some such t than that the their them then there these they this those to too type us ve was we were
		what when where which who whom whose why will with would you your`)
	slices.Sort(words)
	return words
}()
