package search

import "math"

// The constants of BM25. Turns of a conversation are short: their length tells
// less than that of documents does.
const (
	k1 = 1.2
	b  = 0.7
)

// IDF is how much a unit tells that is in n of all texts.
func IDF(n, all int64) float64 {
	all = max(all, n)
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

// Saturate is BM25's share of a unit's idf for a count in a text of a length.
func Saturate(count float64, length int, average float64) float64 {
	if count == 0 {
		return 0
	}
	return count * (k1 + 1) / (count + k1*(1-b+b*float64(length)/max(average, 1)))
}
