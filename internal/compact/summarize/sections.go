package summarize

import (
	"regexp"
	"strings"
)

// section is a part of a summary. The headings are fixed, in every language:
// hosts look for them.
type section int

const (
	decisions section = iota
	todos
	constraints
	asks
	identifiers
	timeline
)

var headings = [...]string{
	decisions:   "## Decisions",
	todos:       "## Open TODOs",
	constraints: "## Constraints/Rules",
	asks:        "## Pending user asks",
	identifiers: "## Exact identifiers",
	timeline:    "## Timeline",
}

// required is how many of the headings, from the first, a summary has even
// where there is nothing to say, if there is room.
const required = int(timeline)

// item is one thing worth keeping.
type item struct {
	section section
	// seq is where it was said, 0 for unknown.
	seq int64
	// who said it, as in "user: "; empty for identifiers and for text taken over.
	who  string
	text string
	// kind groups identifiers: "modified", "read" or "".
	kind string
	// score decides what stays when room is short.
	score int
}

// key is equal for items that say the same.
func (i item) key() string {
	if i.section == identifiers {
		return "id " + i.text
	}
	return strings.ToLower(strings.Join(strings.FieldsFunc(i.text, func(r rune) bool {
		return strings.ContainsRune(" \t.,;:!?*_`'\"()[]…。、，！？「」", r)
	}), " "))
}

// parse reads items out of a summary, its own or another writer's.
func parse(text string) []item {
	var out []item
	at := timeline
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "#") {
			at = sectionOf(line)
			continue
		}
		line = strings.TrimSpace(strings.TrimLeft(line, "-*• "))
		if line == "" || line == nothing {
			continue
		}
		if at == identifiers {
			out = append(out, parseIdentifiers(line)...)
			continue
		}
		it := item{section: at, text: line}
		if m := cited.FindStringSubmatch(line); m != nil {
			it.seq, it.text = parseSeq(m[1]), m[2]
		}
		if m := spoken.FindStringSubmatch(it.text); m != nil {
			it.who, it.text = m[1], m[2]
		}
		out = append(out, it)
	}
	return out
}

const nothing = "none"

var (
	cited  = regexp.MustCompile(`^\[(\d{1,18})\] (.+)$`)
	spoken = regexp.MustCompile(`^((?:user|assistant|system|note|tool call|tool result)(?: \([^()]{1,64}\))?): (.+)$`)
)

func parseSeq(s string) int64 {
	var n int64
	for _, r := range s {
		n = n*10 + int64(r-'0')
	}
	return n
}

func sectionOf(heading string) section {
	h := strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
	for s, known := range headings {
		if h == strings.ToLower(known[3:]) {
			return section(s)
		}
	}
	return timeline
}

func parseIdentifiers(line string) []item {
	kind := ""
	for _, k := range []string{modified, read} {
		if rest, ok := strings.CutPrefix(line, k+": "); ok {
			kind, line = k, rest
		}
	}
	var out []item
	for id := range strings.SplitSeq(line, ", ") {
		if id = strings.TrimSpace(id); id != "" {
			out = append(out, item{section: identifiers, kind: kind, text: id})
		}
	}
	return out
}
