package main

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
)

// bm25 is the plain baseline: lower-case runs of letters and digits, k1 1.2,
// b 0.75, nothing else.
type bm25 struct {
	counts  []map[string]int
	lengths []float64
	in      map[string]float64
	average float64
}

var plainWord = regexp.MustCompile(`[\p{L}\p{N}]+`)

func newBM25(texts []string) *bm25 {
	x := &bm25{in: map[string]float64{}}
	for _, text := range texts {
		words := plainWord.FindAllString(strings.ToLower(text), -1)
		counts := map[string]int{}
		for _, w := range words {
			counts[w]++
		}
		for w := range counts {
			x.in[w]++
		}
		x.counts = append(x.counts, counts)
		x.lengths = append(x.lengths, float64(len(words)))
		x.average += float64(len(words)) / float64(len(texts))
	}
	return x
}

// top are the indexes of the best texts, best first.
func (x *bm25) top(query string, limit int) []int {
	const k1, b = 1.2, 0.75
	scores := make([]float64, len(x.counts))
	n := float64(len(x.counts))
	for _, w := range plainWord.FindAllString(strings.ToLower(query), -1) {
		idf := math.Log(1 + (n-x.in[w]+0.5)/(x.in[w]+0.5))
		for i := range scores {
			tf := float64(x.counts[i][w])
			scores[i] += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*x.lengths[i]/x.average))
		}
	}
	order := make([]int, 0, len(scores))
	for i := range scores {
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order[:min(limit, len(order))]
}
