// Package prompt renders a request for a model. The texts are versioned files;
// the frame around the source makes it data: it stands between tags with a mark
// that follows from the content, so the content cannot hold it, and the answer
// has to end with the mark, so an answer that obeyed the content instead gives
// itself away.
package prompt

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/internal/compact/summarize"
)

// Version names the files that are rendered. A change of any of them is a new
// version in a directory of its own: texts of older versions are not reused.
const Version = "v1"

//go:embed v1/*.md
var files embed.FS

var templates = template.Must(template.ParseFS(files, Version+"/*.md"))

// maxWishes is how many characters of custom instructions are quoted.
const maxWishes = 800

// Prompt is a rendered request.
type Prompt struct {
	System, User string
	// Mark ends a complete answer.
	Mark string
	// MaxTokens is what the answer may take at the provider: more than asked
	// for, since tokens differ and a cut answer is of no use.
	MaxTokens int
}

type fields struct {
	Mark, Source, Wishes, Identifiers, Language string
	Headings                                    []string
	Level, Count, Words, Room                   int
}

// Render writes the prompt. It is a pure function of the request.
func Render(req summarize.Request, d summarize.Demands) Prompt {
	room := max(req.MaxTokens-req.Estimate(""), 8)
	f := fields{
		Source: source(req), Wishes: wishes(req.Instructions), Language: req.Language,
		Level: req.Level, Count: len(req.Children), Room: room,
		// A word of English takes about 1.4 tokens, one of most other languages more.
		Words: max(room*6/10, 6), Identifiers: strings.Join(d.Identifiers, ", "),
	}
	if d.Headings {
		f.Headings = summarize.Headings()
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\x00%d\x00%s\x00%s\x00%s", Version, room, f.Source, f.Wishes, f.Identifiers)
	f.Mark = hex.EncodeToString(hash.Sum(nil)[:8])
	name := "leaf.md"
	if len(req.Children) > 0 {
		name = "merge.md"
	}
	return Prompt{System: execute("system.md", f), User: execute(name, f), Mark: f.Mark, MaxTokens: 2*room + 512}
}

// Corrected is the same request once more, with what was wrong with an answer.
// The answer itself is not repeated: it may be what the source made of it.
func (p Prompt) Corrected(faults []string) Prompt {
	var lines []string
	for _, f := range faults {
		lines = append(lines, oneLine(f))
	}
	p.User = execute("correction.md", struct {
		User, Mark string
		Faults     []string
	}{p.User, p.Mark, lines})
	return p
}

// Unwrap takes the ending off a complete answer; ok is false where the answer
// does not have it.
func (p Prompt) Unwrap(answer string) (text string, ok bool) {
	text = strings.TrimRight(answer, " \t\r\n`*")
	text, ok = strings.CutSuffix(text, "END "+p.Mark)
	if !ok {
		return "", false
	}
	text = strings.TrimSpace(text)
	// Some models fence what they write.
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		if _, body, ok := strings.Cut(rest, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
		}
	}
	return text, !strings.Contains(text, p.Mark)
}

func execute(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err) // an embedded file over a struct of ours
	}
	return b.String()
}

func wishes(s string) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > maxWishes {
		s = string([]rune(s)[:maxWishes]) + "…"
	}
	return indent(s)
}

// source writes lines or children so that no text can pass for the beginning
// of another line.
func source(req summarize.Request) string {
	var b strings.Builder
	for _, c := range req.Children {
		fmt.Fprintf(&b, "[%d-%d] memory\n  %s\n", c.From, c.To, indent(c.Text))
	}
	for _, l := range req.Lines {
		fmt.Fprintf(&b, "[%d] ", l.Seq)
		if !l.Time.IsZero() {
			b.WriteString(l.Time.UTC().Format(time.DateTime) + " ")
		}
		b.WriteString(string(l.Role))
		for _, name := range []string{l.Speaker, l.Tool} {
			if name != "" {
				fmt.Fprintf(&b, " (%s)", oneLine(name))
			}
		}
		if l.Error {
			b.WriteString(" (failed)")
		}
		fmt.Fprintf(&b, ": %s\n", indent(l.Text))
	}
	return b.String()
}

var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\x00", "")

func indent(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(breaks.Replace(s)), "\n", "\n  ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(breaks.Replace(s)), " ") }
