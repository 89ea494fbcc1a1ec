package summarize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// In a summary with less than plainRoom tokens for text, headings would be most
// of it; with more than fullRoom all required ones are there.
const (
	plainRoom = 60
	fullRoom  = 300
)

// fill writes the best items into limit tokens, in sections, each section in the
// order of the conversation. "" means that nothing fits.
func fill(items []item, limit int, estimate func(string) int) string {
	frame := estimate("")
	room := limit - frame
	// A longer text may quote more of each; four of the units are a token.
	longest := min(max(room/6*4, 60), 320)
	chosen := choose(items, room, longest, func(s string) int { return estimate(s) - frame })
	slices.SortFunc(chosen, func(a, b item) int { return cmp.Compare(b.score, a.score) })
	// Estimates of parts need not add up to the estimate of the whole.
	for n := len(chosen); n > 0; n-- {
		if text := render(chosen[:n], room); estimate(text) <= limit {
			return text
		}
	}
	best := items[0]
	for _, it := range items {
		if it.score > best.score {
			best = it
		}
	}
	for l := longest; l >= 8; l -= max(l/5, 1) {
		cut := best
		cut.text = clip(best.text, l)
		if text := render([]item{cut}, 0); estimate(text) <= limit {
			return text
		}
	}
	return ""
}

// choose takes items by score while there is room. Identifiers get no more than
// two fifths of it.
func choose(items []item, room, longest int, cost func(string) int) []item {
	ranked := slices.Clone(items)
	slices.SortStableFunc(ranked, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.seq, b.seq), cmp.Compare(a.text, b.text))
	})
	var out []item
	seen := map[string]bool{}
	opened := map[section]bool{}
	left, forIdentifiers := room, room*2/5
	if room >= 2*fullRoom {
		forIdentifiers = room * 3 / 5
	}
	if room >= fullRoom {
		for s := range required {
			left -= cost(headings[s]) + 4
			opened[section(s)] = true
		}
	}
	for _, it := range ranked {
		if it.section != identifiers {
			it.text = clip(it.text, longest)
		}
		key := it.key()
		if key == "" || seen[key] {
			continue
		}
		need := cost(it.line()) + 1
		if it.section == identifiers {
			need = cost(it.text) + 1
			if need > forIdentifiers {
				continue
			}
		}
		if !opened[it.section] && room >= plainRoom {
			need += cost(headings[it.section]) + 2
		}
		if need > left {
			continue
		}
		left -= need
		if it.section == identifiers {
			forIdentifiers -= need
		}
		seen[key], opened[it.section] = true, true
		out = append(out, it)
	}
	return out
}

func (i item) line() string {
	s := i.text
	if i.who != "" {
		s = i.who + ": " + s
	}
	if i.seq > 0 {
		s = fmt.Sprintf("[%d] %s", i.seq, s)
	}
	return "- " + s
}

func render(items []item, room int) string {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.seq, b.seq))
	})
	var b strings.Builder
	for s, heading := range headings {
		var lines []string
		var of []item
		for _, it := range items {
			if it.section == section(s) {
				of = append(of, it)
			}
		}
		if section(s) == identifiers {
			lines = identifierLines(of)
		} else {
			for _, it := range of {
				lines = append(lines, it.line())
			}
		}
		if len(lines) == 0 && s < required && room >= fullRoom {
			lines = []string{"- " + nothing}
		}
		if len(lines) == 0 {
			continue
		}
		if room >= plainRoom {
			b.WriteString(heading + "\n")
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// identifierLines writes one line a kind.
func identifierLines(items []item) []string {
	var out []string
	for _, kind := range []string{modified, read, ""} {
		var ids []string
		for _, it := range items {
			if it.kind == kind {
				ids = append(ids, it.text)
			}
		}
		if len(ids) == 0 {
			continue
		}
		label := ""
		if kind != "" {
			label = kind + ": "
		}
		out = append(out, "- "+label+strings.Join(ids, ", "))
	}
	return out
}
