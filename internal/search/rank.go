package search

import "math"

// k1 is how fast BM25 has heard enough of a word.
const k1 = 1.2

// How much the length of a text tells, from 0 to 1: for a search of all words,
// and for a question, where the long turns of a talk say more.
const (
	LengthAll = 0.7
	LengthAny = 0.4
)

// What a message has of the rank of its neighbours when a question is asked: an
// answer is seldom in the words of the question, but often next to them.
const (
	FromPrevious = 0.5
	FromSecond   = 0.2 // the one before the previous
	FromNext     = 0.3
)

// IDF is how much a unit tells that is in n of all texts.
func IDF(n, all int64) float64 {
	all = max(all, n)
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

// Saturate is BM25's share of a unit's idf for a count in a text of a length.
func Saturate(count float64, length int, average, b float64) float64 {
	if count == 0 {
		return 0
	}
	return count * (k1 + 1) / (count + k1*(1-b+b*float64(length)/max(average, 1)))
}
