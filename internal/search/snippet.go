package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SnippetRunes is about how long a snippet is; what was found is never cut.
const SnippetRunes = 240

// Snippet is a part of a text around what was found.
type Snippet struct {
	Text string
	// Marks are the found places, in bytes of Text, ascending, apart.
	Marks []Span
}

// Cut makes a snippet that holds the first of the spans unbroken, and the
// others that are near. An ellipsis tells that the text goes on.
func Cut(text string, spans []Span) Snippet {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return a.From - b.From })
	from, to := bestWindow(spans)
	from, to = widen(text, from, to)
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	shift := b.Len() - from
	b.WriteString(text[from:to])
	if to < len(text) {
		b.WriteString("…")
	}
	out := Snippet{Text: b.String()}
	for _, s := range spans {
		if s.From < from || s.To > to {
			continue
		}
		m := Span{s.From + shift, s.To + shift}
		if n := len(out.Marks); n > 0 && out.Marks[n-1].To >= m.From {
			out.Marks[n-1].To = max(out.Marks[n-1].To, m.To)
			continue
		}
		out.Marks = append(out.Marks, m)
	}
	return out
}

// bestWindow is the run of spans that holds most of them within a snippet.
func bestWindow(spans []Span) (from, to int) {
	if len(spans) == 0 {
		return 0, 0
	}
	best := 0
	from, to = spans[0].From, spans[0].To
	for i := range spans {
		end, n := spans[i].To, 0
		for _, s := range spans[i:] {
			if s.To-spans[i].From > SnippetRunes && s != spans[i] {
				break
			}
			end = max(end, s.To)
			n++
		}
		if n > best {
			best, from, to = n, spans[i].From, end
		}
	}
	return from, to
}

// widen adds text on both sides up to the length of a snippet, at blanks.
func widen(text string, from, to int) (int, int) {
	room := SnippetRunes - utf8.RuneCountInString(text[from:to])
	if room <= 0 {
		return from, to
	}
	before := back(text, from, room/2)
	after := forward(text, to, room-utf8.RuneCountInString(text[before:from]))
	before = back(text, from, room-utf8.RuneCountInString(text[to:after]))
	if before > 0 {
		if i := strings.IndexFunc(text[before:from], unicode.IsSpace); i >= 0 {
			before += i + 1
			for before < from && !utf8.RuneStart(text[before]) {
				before++
			}
		}
	}
	if after < len(text) {
		if i := strings.LastIndexFunc(text[to:after], unicode.IsSpace); i > 0 {
			after = to + i
		}
	}
	return before, after
}

func back(text string, at, runes int) int {
	for ; runes > 0 && at > 0; runes-- {
		_, n := utf8.DecodeLastRuneInString(text[:at])
		at -= n
	}
	return at
}

func forward(text string, at, runes int) int {
	for ; runes > 0 && at < len(text); runes-- {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}
