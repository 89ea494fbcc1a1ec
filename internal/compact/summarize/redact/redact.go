// Package redact takes secrets out of what is shown to a model. A secret becomes
// a word that says what was there, always the same one, so equal texts stay
// equal; what it was cannot be told from it.
package redact

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/engined/engined/internal/compact/summarize"
)

// Rule finds one kind of secret. Where the expression has groups, the text of
// the first one stays: it says what follows ("password=").
type Rule struct {
	Kind    string
	Pattern *regexp.Regexp
}

// builtin are the secrets that have a form of their own.
var builtin = []Rule{
	{"private-key", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)},
	{"private-key", regexp.MustCompile(`(?:[A-Za-z0-9+/=]{32,}(?:\s|\\[nr])+)+-----END [A-Z0-9 ]*PRIVATE KEY-----`)},
	{"bearer-token", regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9\-._~+/]{12,}=*`)},
	{"basic-credentials", regexp.MustCompile(`(?i)(\bauthorization:\s*basic\s+)[A-Za-z0-9+/]{8,}=*`)},
	{"api-key", regexp.MustCompile(`\b(?:sk|pk|rk)-(?:[A-Za-z0-9]+-)*[A-Za-z0-9_\-]{16,}`)},
	{"api-key", regexp.MustCompile(`\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}`)},
	{"aws-key", regexp.MustCompile(`\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b`)},
	{"aws-secret", regexp.MustCompile(`(?i)(\baws_?(?:secret_?access_?key|session_?token)["']?\s*[:=]\s*["']?)[A-Za-z0-9/+=]{20,}`)},
	{"github-token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})`)},
	{"gitlab-token", regexp.MustCompile(`\bglpat-[A-Za-z0-9_\-]{20,}`)},
	{"slack-token", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
	{"google-key", regexp.MustCompile(`\bAIza[A-Za-z0-9_\-]{35}`)},
	{"json-web-token", regexp.MustCompile(`\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}`)},
	{"password", regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.\-]*://[^\s/:@"'<>]*:)[^\s/@"'<>]+(@)`)},
	{"password", regexp.MustCompile(`(?i)((?:password|passwd|passphrase|client_secret|api_?key|secret_?key|access_?token)["']?\s*[:=]\s*["']?)[^\s"',;}]{6,}`)},
}

// Redactor applies rules in order. The zero value changes nothing. It is safe
// for concurrent use.
type Redactor struct{ rules []Rule }

// New has the built-in rules and further ones, which come first.
func New(further ...Rule) Redactor {
	return Redactor{rules: append(append([]Rule{}, further...), builtin...)}
}

// None changes nothing.
func None() Redactor { return Redactor{} }

// Parse reads rules, one a line as "kind=expression". Empty lines and those that
// begin with # say nothing.
func Parse(r io.Reader) ([]Rule, error) {
	var out []Rule
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, expr, ok := strings.Cut(line, "=")
		if kind = strings.TrimSpace(kind); !ok || kind == "" || strings.ContainsAny(kind, "[] \t") {
			return nil, fmt.Errorf("line %d is not kind=expression, with a kind of one word", n)
		}
		re, err := regexp.Compile(strings.TrimSpace(expr))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("line %d: the expression matches nothing at all, and so everywhere", n)
		}
		out = append(out, Rule{kind, re})
	}
	return out, lines.Err()
}

// Text redacts one text.
func (r Redactor) Text(s string) string {
	for _, rule := range r.rules {
		if !rule.Pattern.MatchString(s) {
			continue
		}
		mark := "[redacted:" + rule.Kind + "]"
		keep := strings.ReplaceAll(mark, "$", "$$")
		switch n := rule.Pattern.NumSubexp(); {
		case n == 1:
			keep = "${1}" + keep
		case n > 1:
			keep = "${1}" + keep + "${2}"
		}
		s = rule.Pattern.ReplaceAllString(s, keep)
	}
	return s
}

// Request redacts everything that a summarizer would show a model. The request
// it was given stays as it is.
func (r Redactor) Request(req summarize.Request) summarize.Request {
	if len(r.rules) == 0 {
		return req
	}
	req.Instructions = r.Text(req.Instructions)
	lines := make([]summarize.Line, len(req.Lines))
	for i, l := range req.Lines {
		l.Text, l.Speaker, l.Tool = r.Text(l.Text), r.Text(l.Speaker), r.Text(l.Tool)
		lines[i] = l
	}
	children := make([]summarize.Child, len(req.Children))
	for i, c := range req.Children {
		c.Text = r.Text(c.Text)
		children[i] = c
	}
	req.Lines, req.Children = lines, children
	return req
}

// Version changes with the rules: a text made under other ones is not reused.
func (r Redactor) Version() string {
	var b strings.Builder
	for _, rule := range r.rules {
		fmt.Fprintf(&b, "%s=%s\n", rule.Kind, rule.Pattern)
	}
	return b.String()
}
