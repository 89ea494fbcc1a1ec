package compact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/engined/engined/internal/compact/summarize"
)

// appendix is what stands word for word behind a summary of the native runtime,
// as hosts write it: the newest turns, the results that failed, the files that
// were read and changed. Where summaries are retold it is carried over: failures
// and files of all of them, the turns of the newest alone.
type appendix struct {
	turns, failures list
	read, modified  list
}

// list has entries, oldest first, and how many older ones were left out.
type list struct {
	entries []string
	dropped int
}

// The host's numbers: turns kept, code points of each message and of all of
// them; failures and code points of each; code points of each list of files.
const (
	preservedTurns   = 3
	preservedRunes   = 600
	preservedSection = 8000
	mostFailures     = 8
	failureRunes     = 240
	filesRunes       = 900
)

const (
	preservedHeading = "## Recent turns preserved verbatim"
	failuresHeading  = "## Tool Failures"
)

// appendixOf is the appendix of a request, and the request without those parts
// of its children that the appendix has.
func appendixOf(req summarize.Request) (appendix, summarize.Request) {
	if len(req.Children) == 0 {
		return appendixOfLines(req.Lines), req
	}
	var out appendix
	req.Children = slices.Clone(req.Children)
	for i := range req.Children {
		body, a := cutAppendix(req.Children[i].Text)
		req.Children[i].Text = body
		out.turns = a.turns
		out.failures.join(a.failures)
		out.read.join(a.read)
		out.modified.join(a.modified)
	}
	out.bound()
	return out, req
}

func appendixOfLines(lines []summarize.Line) appendix {
	var a appendix
	for _, l := range lines {
		switch l.Role {
		case summarize.ToolResult:
			if l.Error {
				a.failures.entries = append(a.failures.entries, entry(l.Seq, cmp.Or(l.Tool, "tool"), l.Text, failureRunes))
			}
		case summarize.Call:
			read, modified := filesOf(l)
			a.read.entries = append(a.read.entries, read...)
			a.modified.entries = append(a.modified.entries, modified...)
		case summarize.User, summarize.Assistant, summarize.System, summarize.Note:
		}
	}
	a.turns.entries = newestTurns(lines)
	a.bound()
	return a
}

func newestTurns(lines []summarize.Line) []string {
	from, turns := len(lines), 0
	for i := len(lines) - 1; i >= 0 && turns < preservedTurns; i-- {
		if lines[i].Role == summarize.User {
			from = i
			turns++
		}
	}
	var out []string
	for _, l := range lines[from:] {
		if l.Role == summarize.Call {
			continue
		}
		who := string(l.Role)
		if l.Tool != "" {
			who += " (" + l.Tool + ")"
		}
		out = append(out, entry(l.Seq, who, l.Text, preservedRunes))
	}
	return out
}

// entry is one line: no blank one comes of it, which would end a section early.
func entry(seq int64, who, text string, runes int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > runes {
		text = string([]rune(text)[:runes]) + "…"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("[%d] %s: %s", seq, who, text)), " ")
}

var (
	// pathArg finds a path in arguments that may be cut, so that no JSON parser
	// takes them; patched the files of a patch.
	pathArg = regexp.MustCompile(`"(?:path|file_path|filePath|filename)"\s*:\s*("(?:[^"\\]|\\.)*")`)
	patched = regexp.MustCompile(`\*\*\* (?:Add|Update|Delete) File: ([^\n"\\]+)`)
	// The tools of the hosts' agents that read and that change files.
	reading  = regexp.MustCompile(`(?i)^(read|read_?file|view|cat)$`)
	changing = regexp.MustCompile(`(?i)^(write|write_?file|edit|edit_?file|multi_?edit|str_replace|str_replace_(based_)?edit(or)?(_tool)?|create_?file|apply_?patch)$`)
)

// filesOf are the files that a call reads and changes.
func filesOf(call summarize.Line) (read, modified []string) {
	changes := changing.MatchString(call.Tool)
	if !changes && !reading.MatchString(call.Tool) {
		return nil, nil
	}
	var files []string
	for _, m := range pathArg.FindAllStringSubmatch(call.Text, -1) {
		var path string
		if json.Unmarshal([]byte(m[1]), &path) == nil {
			files = append(files, path)
		}
	}
	for _, m := range patched.FindAllStringSubmatch(call.Text, -1) {
		files = append(files, m[1])
	}
	files = slices.DeleteFunc(files, func(p string) bool {
		return p != strings.Join(strings.Fields(p), " ") || p == "" || len(p) > 300 || strings.ContainsAny(p, "<>") || more.MatchString(p)
	})
	if changes {
		return nil, files
	}
	return files, nil
}

// bound holds each list to its numbers. A file that was changed is not told of
// as read.
func (a *appendix) bound() {
	a.failures.once()
	a.read.once()
	a.modified.once()
	a.read.entries = slices.DeleteFunc(a.read.entries, func(p string) bool { return slices.Contains(a.modified.entries, p) })
	a.failures.cut(func(l *list) bool { return len(l.entries) > mostFailures })
	for _, files := range []*list{&a.read, &a.modified} {
		files.cut(func(l *list) bool { return utf8.RuneCountInString(l.text("")) > filesRunes })
	}
	a.turns.cut(func(l *list) bool { return utf8.RuneCountInString(l.text("- ")) > preservedSection })
}

// join adds what came later.
func (l *list) join(o list) {
	l.entries = append(l.entries, o.entries...)
	l.dropped += o.dropped
}

// once keeps the newest of equal entries.
func (l *list) once() {
	seen := map[string]bool{}
	var out []string
	for _, e := range slices.Backward(l.entries) {
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	l.entries = out
}

func (l *list) cut(tooMuch func(*list) bool) {
	for len(l.entries) > 0 && tooMuch(l) {
		l.drop()
	}
}

// drop takes the oldest entry out.
func (l *list) drop() {
	l.entries = l.entries[1:]
	l.dropped++
}

// text is a line an entry, and one for those that were left out.
func (l *list) text(bullet string) string {
	var b strings.Builder
	for _, e := range l.entries {
		b.WriteString("\n" + bullet + e)
	}
	if l.dropped > 0 && len(l.entries) > 0 {
		fmt.Fprintf(&b, "\n%s...and %d more", bullet, l.dropped)
	}
	return b.String()
}

// shrink takes out what can best be missed; false where nothing is left.
func (a *appendix) shrink() bool {
	for _, l := range []*list{&a.turns, &a.read, &a.modified, &a.failures} {
		if len(l.entries) > 0 {
			l.drop()
			return true
		}
	}
	return false
}

// section is one part of an appendix as it is written: no blank line is in it.
type section struct {
	list          *list
	before, after string
	bullet        string
}

func (a *appendix) sections() []section {
	return []section{
		{&a.turns, preservedHeading, "", "- "},
		{&a.failures, failuresHeading, "", "- "},
		{&a.read, "<read-files>", "\n</read-files>", ""},
		{&a.modified, "<modified-files>", "\n</modified-files>", ""},
	}
}

func (a *appendix) String() string {
	var out []string
	for _, s := range a.sections() {
		if text := s.list.text(s.bullet); text != "" {
			out = append(out, s.before+text+s.after)
		}
	}
	return strings.Join(out, "\n\n")
}

// cutAppendix takes a summary apart. Only what stands at its end, in order and
// in its form, is the appendix; the like of it further up is text.
func cutAppendix(text string) (body string, a appendix) {
	body = strings.TrimSpace(text)
	for _, s := range slices.Backward(a.sections()) {
		rest, last := "", body
		if at := strings.LastIndex(body, "\n\n"); at >= 0 {
			rest, last = body[:at], body[at+2:]
		}
		inner, begins := strings.CutPrefix(last, s.before+"\n")
		inner, ends := strings.CutSuffix(inner, s.after)
		if begins && ends {
			*s.list, body = listOf(inner, s.bullet), strings.TrimSpace(rest)
		}
	}
	return body, a
}

var more = regexp.MustCompile(`^\.\.\.and (\d{1,9}) more$`)

func listOf(text, bullet string) list {
	var l list
	for line := range strings.SplitSeq(text, "\n") {
		entry := strings.TrimPrefix(line, bullet)
		if m := more.FindStringSubmatch(entry); m != nil {
			l.dropped, _ = strconv.Atoi(m[1]) // digits, and few
		} else if strings.TrimSpace(entry) != "" {
			l.entries = append(l.entries, entry)
		}
	}
	return l
}
