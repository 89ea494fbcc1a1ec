package search

// Subwords are the folded parts of a word.
func Subwords(word string) []string { return subwords(word) }
