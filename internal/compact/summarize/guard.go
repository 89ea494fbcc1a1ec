package summarize

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Headings are what a summary with room for them holds, in this order.
func Headings() []string { return slices.Clone(headings[:required]) }

// Demands are what a summary written by a model is held to, beside Accept. They
// follow from the request alone.
type Demands struct {
	// Headings tells that every one of Headings must stand in a line of its own,
	// once. Smaller summaries have none: headings would be most of them.
	Headings bool
	// Identifiers must be there letter for letter, the most important ones first.
	Identifiers []string
	// Dropped counts the ranked identifiers that there is no room to demand.
	Dropped int
	// Ask is the user's newest message. Words of it must be there.
	Ask string
}

const (
	mostIdentifiers = 12
	// leastWeight is that of an identifier which somebody used, rather than one
	// that a tool printed.
	leastWeight = 4
	askRunes    = 800
)

// DemandsOf tells what a summary of this request must hold. Identifiers get no
// more than a quarter of its room.
func DemandsOf(req Request) Demands {
	frame := req.Estimate("")
	room := req.MaxTokens - frame
	d := Demands{Headings: room >= fullRoom}
	if room < plainRoom {
		return d
	}
	left := room / 4
	for _, id := range ranked(req) {
		cost := req.Estimate(id) - frame + 1
		if len(d.Identifiers) == mostIdentifiers || cost > left {
			d.Dropped++
			continue
		}
		left -= cost
		d.Identifiers = append(d.Identifiers, id)
	}
	d.Ask = firstRunes(latestAskOf(req), askRunes)
	return d
}

// ranked are the identifiers worth demanding, best first.
func ranked(req Request) []string {
	var out []string
	if len(req.Children) == 0 {
		for _, f := range collectIdentifiers(req.Lines) {
			if f.weight >= leastWeight {
				out = append(out, f.text)
			}
		}
		return out
	}
	var ids []item
	for _, it := range fromChildren(req.Children) {
		if it.section == identifiers && worthKeeping(it.text) {
			ids = append(ids, it)
		}
	}
	slices.SortStableFunc(ids, func(a, b item) int { return cmp.Compare(b.score, a.score) })
	for _, it := range ids {
		out = append(out, it.text)
	}
	return out
}

// latestAskOf is what the user said last; of summaries, the newest one's first
// pending ask.
func latestAskOf(req Request) string {
	for _, l := range slices.Backward(req.Lines) {
		if l.Role == User {
			return clean(l.Text)
		}
	}
	if n := len(req.Children); n > 0 {
		for _, it := range parse(req.Children[n-1].Text) {
			if it.section == asks {
				return clean(it.text)
			}
		}
	}
	return ""
}

// Missing names what a text lacks, as corrections to its writer; nothing is
// missing where it is empty.
func (d Demands) Missing(text string) []string {
	var out []string
	if d.Headings {
		out = missingHeadings(text)
	}
	var lost []string
	for _, id := range d.Identifiers {
		if !strings.Contains(text, id) {
			lost = append(lost, id)
		}
	}
	if len(lost) > 0 {
		out = append(out, "these identifiers, letter for letter: "+strings.Join(lost, ", "))
	}
	if !mentions(text, d.Ask) {
		out = append(out, "the newest request of the user: "+firstRunes(d.Ask, 200))
	}
	return out
}

func missingHeadings(text string) []string {
	var out []string
	for _, h := range headings[:required] {
		n := 0
		for line := range strings.Lines(text) {
			if strings.EqualFold(strings.TrimSpace(line), h) {
				n++
			}
		}
		switch {
		case n == 0:
			out = append(out, "the heading "+h+", in a line of its own")
		case n > 1:
			out = append(out, "the heading "+h+" only once")
		}
	}
	return out
}

// mentions tells whether a text speaks of an ask: two of its words, or one where
// it has fewer than three.
func mentions(text, ask string) bool {
	want := keywords(ask)
	if len(want) == 0 {
		return true
	}
	need := 1
	if len(want) >= 3 {
		need = 2
	}
	has := keywords(text)
	for w := range want {
		if has[w] {
			if need--; need == 0 {
				return true
			}
		}
	}
	return false
}

// keywords are the words of four letters and more, numbers, and the bigrams of
// scripts without blanks.
func keywords(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		var wide []rune
		narrow := 0
		for _, r := range word {
			if width(r) == 4 {
				wide = append(wide, r)
			} else {
				narrow++
			}
		}
		for i := range len(wide) - 1 {
			out[string(wide[i:i+2])] = true
		}
		if len(wide) == 0 && (narrow >= 4 || strings.ContainsFunc(word, unicode.IsDigit)) {
			out[word] = true
		}
	}
	return out
}

func firstRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n])
}

// QualityError is a summary that lacks what it must hold. Missing quotes the
// conversation and is for the summary's writer alone; Error, which is logged and
// kept, says of what kind it is.
type QualityError struct{ Missing []string }

func (e *QualityError) Error() string {
	kinds := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		kinds[i], _, _ = strings.Cut(m, ": ")
	}
	return "the summary lacks " + strings.Join(kinds, "; ")
}
