package window

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A summary that has no room stands in the window in a shorter form first: a few
// of its lines, and where the whole is. How short depends on the summary alone,
// so its bytes stay the same for an epoch. The numbers are uncalibrated tokens.
const (
	// standIn is what a shorter form takes, frame and mark included, or a fifth of
	// the summary where that is more.
	standIn = 160
	// noticeTokens are for the line that names what is not shown at all.
	noticeTokens = 48
	// namedAtMost are named in that line.
	namedAtMost = 3
	// standInLine is the longest line of a shorter form, in code points.
	standInLine = 160
)

// showing is how one summary is shown.
type showing struct {
	keep bool
	// cutTo is the uncalibrated size of the shorter form; 0 shows it whole.
	cutTo int
	// tokens is calibrated.
	tokens int64
	// notice tells that the line about those that are not shown stands in it.
	notice bool
}

// showSummaries says how summaries are shown within room. As long as they do not
// fit, the next one gets its shorter form; when all have it, the next one
// leaves. Both go through the lowest level first and through the oldest of a
// level first, but for the root, the oldest of the highest level: it is the last, and
// names those that left. A larger room never shows less.
func (l *layout) showSummaries(room int64) []showing {
	n := len(l.in.Summaries)
	out := make([]showing, n)
	used := int64(0)
	for i, s := range l.in.Summaries {
		out[i] = showing{keep: true, tokens: l.in.calibrated(s.Tokens)}
		used += out[i].tokens
	}
	room >>= chargeBits
	order := l.leaving()
	for k := 0; used > room && k < 2*n; k++ {
		i := order[k%n]
		root := order[n-1]
		if k >= n {
			used -= out[i].tokens
			out[i] = showing{}
			if r := &out[root]; k == n && i != root && r.cutTo == 0 {
				// It was too short to be shortened, and gets longer by the line.
				r.tokens = l.in.calibrated(l.in.Summaries[root].Tokens + noticeTokens)
				used += r.tokens - l.in.calibrated(l.in.Summaries[root].Tokens)
			}
			out[root].notice = i != root
			continue
		}
		whole := l.in.Summaries[i].Tokens
		short := max(standIn, whole/5)
		if i == root && n > 1 {
			short += noticeTokens
		}
		if whole > short {
			used -= out[i].tokens
			out[i].cutTo, out[i].tokens = short, l.in.calibrated(short)
			used += out[i].tokens
		}
	}
	return out
}

// leaving is the order in which summaries give way.
func (l *layout) leaving() []int {
	order := make([]int, len(l.in.Summaries))
	root := 0
	for i := range order {
		order[i] = i
		if l.in.Summaries[i].Level > l.in.Summaries[root].Level {
			root = i
		}
	}
	last := func(i int) int {
		if i == root {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(l.in.Summaries[a].Level, l.in.Summaries[b].Level))
	})
	return order
}

// standInFor is what stands in the window for a summary's text: a shorter form
// of it, the line about summaries that are not shown, or both.
//
// Summaries are named as the plan does, not as Source.Seq: that is their id,
// whichever session's log they are in.
func (p Plan) standInFor(text string, it Item, est func(string) int) string {
	notice := ""
	if it.Notice {
		notice = "\n" + noticeOf(p.LeftOut)
	}
	if it.CutTo == 0 {
		return text + notice
	}
	around := max(it.Whole-est(text), 0)
	total := utf8.RuneCountInString(text)
	mark := func(n int) string {
		return fmt.Sprintf("\n[engined: %d of %d characters shown for want of room; expand summary %d for the rest]", n, total, it.Seq)
	}
	limit := it.CutTo - around - est(mark(total)) - est(notice)
	short := extract(text, limit, est)
	return short + mark(utf8.RuneCountInString(short)) + notice
}

// noticeOf names the summaries that are not shown.
func noticeOf(out []LeftOut) string {
	var ids []string
	for _, lo := range out {
		if lo.Kind == KindSummary {
			ids = append(ids, strconv.FormatInt(lo.Seq, 10))
		}
	}
	more := ""
	if n := len(ids) - namedAtMost; n > 0 {
		ids, more = ids[:namedAtMost], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("[engined: no room for the summaries %s%s; expand them to read them]", strings.Join(ids, ", "), more)
}

// extract picks lines of a summary within limit tokens: the first of every
// section, then the second of every section, and so on.
func extract(text string, limit int, est func(string) int) string {
	type line struct {
		text     string
		section  int
		heading  bool
		selected bool
	}
	var lines []line
	sections := [][]int{nil}
	heads := []int{-1}
	for s := range strings.Lines(text) {
		s = strings.TrimSpace(s)
		switch {
		case s == "" || s == "- none":
			continue
		case strings.HasPrefix(s, "#"):
			heads, sections = append(heads, len(lines)), append(sections, nil)
			lines = append(lines, line{text: s, section: len(sections) - 1, heading: true})
			continue
		}
		at := len(sections) - 1
		sections[at] = append(sections[at], len(lines))
		lines = append(lines, line{text: clipRunes(s, standInLine), section: at})
	}
	used := 0
	for round, more := 0, true; more && used < limit; round++ {
		more = false
		for i, items := range sections {
			if round >= len(items) {
				continue
			}
			more = true
			l := &lines[items[round]]
			cost := est(l.text) + 1
			if heads[i] >= 0 && !lines[heads[i]].selected {
				cost += est(lines[heads[i]].text) + 1
			}
			if used+cost > limit {
				continue
			}
			used += cost
			if l.selected = true; heads[i] >= 0 {
				lines[heads[i]].selected = true
			}
		}
	}
	var out []string
	for _, l := range lines {
		if l.selected {
			out = append(out, l.text)
		}
	}
	if len(out) > 0 {
		return strings.Join(out, "\n")
	}
	// No line fits: the beginning of the first that is none of a heading.
	for _, l := range lines {
		if !l.heading {
			for n := utf8.RuneCountInString(l.text); n > 0; n = n * 3 / 4 {
				if s := clipRunes(l.text, n); est(s) <= limit {
					return s
				}
			}
			break
		}
	}
	return "…"
}

// clipRunes shortens a line to n code points.
func clipRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
