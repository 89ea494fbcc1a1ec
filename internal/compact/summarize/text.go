package summarize

import (
	"regexp"
	"strings"
	"unicode"
)

// ourTags are the frames that summaries and prompts stand in. Source text must
// not be able to close one.
var ourTags = regexp.MustCompile(`(?i)<(\s*/?\s*(?:summary|previous-summary|conversation|instructions|source)\b)`)

// clean makes text one harmless line: no controls, no line breaks, none of our
// own tags.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufeff':
			return -1
		}
		return r
	}, ansi.ReplaceAllString(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	return ourTags.ReplaceAllString(s, "‹$1")
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// width is about how many quarters of a token a rune takes.
func width(r rune) int {
	if r < 0x80 {
		return 1
	}
	if r < 0x2e80 {
		return 2
	}
	return 4
}

// clip shortens s to about limit quarters of a token, at a blank if one is near.
func clip(s string, limit int) string {
	used, blank := 0, 0
	for i, r := range s {
		if used += width(r); used > limit {
			if blank > i*2/3 {
				i = blank
			}
			return strings.TrimRight(s[:i], " ,;:") + "…"
		}
		if r == ' ' {
			blank = i
		}
	}
	return s
}

// sentences cuts text at line ends and at full stops of any script. Code and
// other unbroken stretches stay whole.
func sentences(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		start := 0
		runes := []rune(line)
		for i, r := range runes {
			next := i + 1
			stop := strings.ContainsRune("。！？", r) ||
				strings.ContainsRune(".!?", r) && (next == len(runes) || unicode.IsSpace(runes[next]))
			if stop {
				out = appendSentence(out, string(runes[start:next]))
				start = next
			}
		}
		out = appendSentence(out, string(runes[start:]))
	}
	return out
}

func appendSentence(out []string, s string) []string {
	s = strings.TrimSpace(s)
	if rest := strings.TrimLeft(s, "-*>#•– "); !strings.HasPrefix(rest, "[ ]") {
		s = rest
	}
	if len(s) > 2 {
		out = append(out, s)
	}
	return out
}
