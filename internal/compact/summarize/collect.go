package summarize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Scores: what an item of a section is worth, and by how much each further one
// of it is worth less, so that no section crowds out the others.
var worth = [...]struct{ first, step int }{
	decisions:   {900, 45},
	todos:       {870, 60},
	constraints: {880, 45},
	asks:        {1000, 120},
	identifiers: {850, 16},
	timeline:    {600, 12},
}

const (
	latestAsk  = 980
	firstAsk   = 800
	someAsk    = 780
	failure    = 830
	lastAnswer = 810
	toolCounts = 520
)

// fromLines finds what is worth keeping of a conversation.
func fromLines(lines []Line) []item {
	var items []item
	items = append(items, statements(lines)...)
	items = append(items, conversation(lines)...)
	items = append(items, failures(lines)...)
	for rank, f := range collectIdentifiers(lines) {
		items = append(items, item{
			section: identifiers, kind: f.kind, text: f.text,
			score: worth[identifiers].first - worth[identifiers].step*rank,
		})
	}
	if t, ok := tools(lines); ok {
		items = append(items, t)
	}
	return items
}

// statements finds decisions, rules and work left. Only people and the system
// set rules, and only they and the assistant decide: what a tool printed is
// never more than a quotation.
func statements(lines []Line) []item {
	var found [timeline][]item
	for _, l := range lines {
		if l.Role != User && l.Role != Assistant && l.Role != System {
			continue
		}
		for _, s := range sentences(l.Text) {
			if len(s) > 1200 {
				continue
			}
			it := item{seq: l.Seq, who: who(l), text: clean(s)}
			switch {
			case l.Role != Assistant && constraintCue.MatchString(s):
				it.section = constraints
			case l.Role != System && todoCue.MatchString(s):
				it.section = todos
			case l.Role != System && decisionCue.MatchString(s):
				it.section = decisions
			default:
				continue
			}
			found[it.section] = append(found[it.section], it)
		}
	}
	var out []item
	for _, items := range found {
		out = append(out, scored(items)...)
	}
	return out
}

// scored ranks the items of one section, given oldest first.
func scored(items []item) []item {
	if len(items) == 0 {
		return nil
	}
	w := worth[items[0].section]
	for rank, i := range order(len(items)) {
		items[i].score = w.first - w.step*rank
	}
	return items
}

// order ranks n things of increasing age: two of the newest, then one of the
// oldest, and so on. What was settled first must not be the first to go.
func order(n int) []int {
	out := make([]int, 0, n)
	for lo, hi := 0, n-1; lo <= hi; {
		if len(out)%3 == 2 {
			out = append(out, lo)
			lo++
			continue
		}
		out = append(out, hi)
		hi--
	}
	return out
}

// conversation is what was asked and answered. An ask that no answer followed is
// pending.
func conversation(lines []Line) []item {
	lastSaid := -1
	for i, l := range lines {
		if l.Role == Assistant {
			lastSaid = i
		}
	}
	var users, pending, said []item
	for i, l := range lines {
		text := clean(l.Text)
		if text == "" {
			continue
		}
		it := item{section: timeline, seq: l.Seq, who: who(l), text: text}
		switch l.Role {
		case User:
			if i > lastSaid {
				it.section = asks
				pending = append(pending, it)
				continue
			}
			users = append(users, it)
		case Assistant, Note, System:
			said = append(said, it)
		}
	}
	for rank, i := range order(len(users)) {
		users[i].score = someAsk - 25*rank
	}
	if n := len(users); n > 0 {
		users[0].score = max(users[0].score, firstAsk)
		users[n-1].score = latestAsk
	}
	slices.Reverse(pending)
	for rank := range pending {
		pending[rank].score = worth[asks].first - worth[asks].step*rank
	}
	said = scored(said)
	if n := len(said); n > 0 {
		said[n-1].score = lastAnswer
	}
	return slices.Concat(users, said, pending)
}

// failures are the newest errors that tools reported.
func failures(lines []Line) []item {
	var out []item
	for _, l := range slices.Backward(lines) {
		if l.Role != ToolResult || len(out) >= 12 {
			continue
		}
		if text := failureOf(l); text != "" {
			out = append(out, item{section: timeline, seq: l.Seq, who: who(l), text: text, score: failure - 50*len(out)})
		}
	}
	return out
}

// failureOf is the line that tells the error. Where the host did not mark the
// result, only its ends count: a listing may hold the word anywhere.
func failureOf(l Line) string {
	text := strings.TrimSpace(l.Text)
	lines := strings.Split(text, "\n")
	if !l.Error && len(lines) > 6 {
		lines = slices.Concat(lines[:3], lines[len(lines)-3:])
	}
	for _, s := range lines {
		if len(s) <= 600 && errorCue.MatchString(s) {
			return clean(s)
		}
	}
	if l.Error {
		return clean(clip(text, 300))
	}
	return ""
}

// tools counts the calls.
func tools(lines []Line) (item, bool) {
	count := map[string]int{}
	var last int64
	for _, l := range lines {
		if l.Role == Call {
			count[clean(l.Tool)]++
			last = l.Seq
		}
	}
	if len(count) == 0 {
		return item{}, false
	}
	names := make([]string, 0, len(count))
	for n := range count {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s ×%d", n, count[n])
	}
	return item{section: timeline, seq: last, text: "tools used: " + strings.Join(names, ", "), score: toolCounts}, true
}

// who names the speaker of a line.
func who(l Line) string {
	name := l.Speaker
	if l.Role == Call || l.Role == ToolResult {
		name = l.Tool
	}
	if name = clip(strings.Trim(clean(name), "() "), 40); name == "" {
		return string(l.Role)
	}
	return fmt.Sprintf("%s (%s)", l.Role, strings.NewReplacer("(", "", ")", "").Replace(name))
}
