package summarize

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

const (
	modified = "modified"
	read     = "read"
)

// identifier matches what must not be paraphrased. The longer kinds come first,
// so that a number inside a URL is no find of its own.
var identifier = regexp.MustCompile(
	`https?://[^\s<>"'` + "`" + `()\[\]{}，。、）」]+` +
		`|[\w.+-]+@[\w-]+\.[\w.-]*\w` +
		`|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b` +
		`|(?:~|\.{1,2})?(?:/[\p{L}\p{N}_.@+-]+){2,}/?` +
		`|[\p{L}\p{N}_.@+-]+(?:/[\p{L}\p{N}_.@+-]+)+\.[A-Za-z0-9]{1,8}\b` +
		`|\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}):\d{2,5}\b` +
		`|\b\d{1,3}(?:\.\d{1,3}){3}\b` +
		`|\bv?\d+\.\d+(?:\.\d+)+(?:-[\w.]+)?\b` +
		`|\b[\w-]+\.(?:go|mod|sum|ts|tsx|js|mjs|jsx|py|rb|rs|java|kt|c|h|cc|cpp|cs|php|swift|sh|sql|md|txt|json|jsonl|ya?ml|toml|xml|html|css|csv|log|env|cfg|ini|lock|pdf|png|jpg|svg|docx?|xlsx?)\b` +
		`|\b[0-9a-f]{7,64}\b` +
		`|\b[A-Z][A-Z0-9]*[-_]?\d{2,}[A-Z0-9]*\b` +
		`|\b[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*[_-]\d{2,}\b` +
		`|\b\d{4,}\b` +
		"|`[^`\\s,]{2,60}`" +
		`|` + severalParts)

// severalParts matches names that somebody made up of three words or more, as
// programs have them.
const severalParts = `\b[a-zA-Z][a-z0-9]+(?:[A-Z][a-z0-9]+){2,}\b|\b[a-zA-Z0-9]+(?:_[a-zA-Z0-9]+){2,}\b`

var madeUp = regexp.MustCompile(`^[A-Za-z_]+$`)

// found is one identifier with what speaks for keeping it.
type found struct {
	text   string
	kind   string
	weight int
	last   int
}

// weights by who used it: what people say matters more than what tools print.
func weightOf(r Role) int {
	switch r {
	case User:
		return 12
	case Assistant, System, Note:
		return 5
	case Call:
		return 4
	default:
		return 1
	}
}

// collectIdentifiers ranks the identifiers of all lines, best first.
func collectIdentifiers(lines []Line) []found {
	byText := map[string]*found{}
	add := func(text, kind string, weight, at int) {
		f := byText[text]
		if f == nil {
			f = &found{text: text}
			byText[text] = f
		}
		if kind == modified || f.kind == "" {
			f.kind = kind
		}
		f.weight += weight
		f.last = at
	}
	for i, l := range lines {
		seen := map[string]bool{}
		for word := range strings.FieldsSeq(l.Text) {
			if seen[word] || !promising(word) {
				continue
			}
			seen[word] = true
			for _, id := range identifier.FindAllString(word, 20) {
				id = strings.Trim(strings.TrimRight(clean(id), ".,;:!?"), "`")
				if worthKeeping(id) && !seen["id "+id] {
					seen["id "+id] = true
					weight := weightOf(l.Role)
					if madeUp.MatchString(id) {
						weight = (weight + 1) / 2 // there are many, and most can be found again
					}
					add(id, "", weight, i)
				}
			}
		}
		if l.Role == Call {
			if path, kind := touched(l); path != "" {
				add(path, kind, map[string]int{modified: 15, read: 3}[kind], i)
			}
		}
	}
	out := make([]found, 0, len(byText))
	for _, f := range byText {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.last, a.last), cmp.Compare(a.text, b.text))
	})
	return out
}

// promising is a cheap sieve in front of the expression: no identifier has a
// blank in it, and each has one of these signs.
func promising(word string) bool {
	// A very long word is text in a script without blanks, or else a blob.
	if len(word) < 3 || len(word) > 2000 && !strings.ContainsFunc(word, func(r rune) bool { return width(r) == 4 }) {
		return false
	}
	return strings.ContainsAny(word, "0123456789/@`") || strings.Contains(strings.Trim(word, "."), ".") || manyParts(word)
}

// manyParts tells that a word has two signs of a name of several parts.
func manyParts(word string) bool {
	n := 0
	for i := 1; i < len(word); i++ {
		if word[i] == '_' || 'A' <= word[i] && word[i] <= 'Z' && 'a' <= word[i-1] && word[i-1] <= 'z' {
			n++
		}
	}
	return n > 1
}

func worthKeeping(id string) bool {
	if len(id) < 3 || len(id) > 200 || strings.Contains(id, ", ") {
		return false
	}
	// A bare word, in code ticks or of hex letters, says nothing.
	return strings.ContainsAny(id, "0123456789/._@-:()") || strings.ToLower(id[1:]) != id[1:]
}

// touched names the file that a call of a usual file tool is about.
func touched(l Line) (path, kind string) {
	name := strings.ToLower(l.Tool)
	switch {
	case containsAny(name, "write", "edit", "patch", "create", "replace", "insert"):
		kind = modified
	case containsAny(name, "read", "view", "cat", "open"):
		kind = read
	default:
		return "", ""
	}
	var args map[string]any
	if json.Unmarshal([]byte(l.Text), &args) != nil {
		return "", ""
	}
	for _, k := range []string{"path", "file_path", "filePath", "filename", "file", "target_file", "notebook_path"} {
		if s, ok := args[k].(string); ok && s != "" && len(s) <= 200 {
			return strings.ReplaceAll(clean(s), ", ", ","), kind
		}
	}
	return "", ""
}

func containsAny(s string, subs ...string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}
