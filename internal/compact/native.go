package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/engined/engined/internal/compact/summarize"
)

// Native is the plan of the host's native runtime: the newest 20,000 tokens stay,
// one summary tells of all before them, and a turn that is cut gets a summary of
// its own. See Structured for the text.
func Native() Single { return Single{KeepTokens: 20_000, ApartTurn: true, MaxTokens: 4000} }

// ErrHeadings: a summary lacks sections that hosts look for.
var ErrHeadings = errors.New("the summary lacks required headings")

// Structured has another summarizer write as the host's native runtime does: the
// five required sections are asked for and held against the text, with one
// correction, and the newest turns of the source follow word for word.
type Structured struct{ Inner summarize.Summarizer }

// The native runtime's numbers: turns kept word for word, code points of each
// message and of all of them. Under auditTokens there is no room for sections.
const (
	preservedTurns   = 3
	preservedRunes   = 600
	preservedSection = 8000
	auditTokens      = 400
)

const preservedHeading = "## Recent turns preserved verbatim"

var requiredHeadings = []string{
	"## Decisions", "## Open TODOs", "## Constraints/Rules", "## Pending user asks", "## Exact identifiers",
}

// Name is the inner summarizer's: it writes the text.
func (s Structured) Name() string { return s.Inner.Name() }

// Version implements summarize.Summarizer.
func (s Structured) Version() string { return "native-1/" + s.Inner.Version() }

// Summarize implements summarize.Summarizer. It fails with ErrHeadings where the
// sections are missing after a correction too.
func (s Structured) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	suffix := preserved(req)
	inner := req
	if suffix != "" {
		// The body keeps at least half of the room.
		for cost := s.cost(req, suffix); cost > req.MaxTokens/2; cost = s.cost(req, suffix) {
			if suffix = dropOldest(suffix); suffix == "" {
				break
			}
		}
		if suffix != "" {
			inner.MaxTokens -= s.cost(req, suffix)
		}
	}
	res, err := s.audited(ctx, inner)
	if err != nil || suffix == "" {
		return res, err
	}
	if whole := res.Text + "\n\n" + suffix; req.Estimate(whole) <= req.MaxTokens {
		res.Text = whole
	}
	return res, nil
}

// cost is what the suffix adds to a text.
func (s Structured) cost(req summarize.Request, suffix string) int {
	return req.Estimate("x\n\n"+suffix) - req.Estimate("x") + 1
}

func (s Structured) audited(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	res, err := s.Inner.Summarize(ctx, req)
	if err != nil || req.MaxTokens < auditTokens {
		return res, err
	}
	missing := missingHeadings(res.Text)
	if missing == nil {
		return res, nil
	}
	again := req
	again.Instructions = strings.TrimSpace(req.Instructions + "\nUse each of these headings once, on a line of its own, in this order: " +
		strings.Join(requiredHeadings, ", ") + ". An earlier attempt lacked: " + strings.Join(missing, ", ") + ".")
	if res, err = s.Inner.Summarize(ctx, again); err != nil {
		return res, err
	}
	if missing = missingHeadings(res.Text); missing != nil {
		return summarize.Result{}, fmt.Errorf("%w: %s", ErrHeadings, strings.Join(missing, ", "))
	}
	return res, nil
}

// missingHeadings lists what does not stand on a line of its own exactly once.
func missingHeadings(text string) []string {
	count := map[string]int{}
	for line := range strings.Lines(text) {
		count[strings.TrimSpace(line)]++
	}
	var out []string
	for _, h := range requiredHeadings {
		if count[h] != 1 {
			out = append(out, h)
		}
	}
	return out
}

// preserved is the section of the newest turns, "" where there is none. Where
// summaries are retold it is the newest one's, carried over; those of older ones
// are text like any other.
func preserved(req summarize.Request) string {
	if n := len(req.Children); n > 0 {
		_, section, ok := strings.Cut(req.Children[n-1].Text, preservedHeading+"\n")
		if !ok {
			return ""
		}
		return preservedHeading + "\n" + strings.TrimSpace(section)
	}
	from, turns := len(req.Lines), 0
	for i := len(req.Lines) - 1; i >= 0 && turns < preservedTurns; i-- {
		if req.Lines[i].Role == summarize.User {
			from = i
			turns++
		}
	}
	var lines []string
	for _, l := range req.Lines[from:] {
		if l.Role == summarize.Call {
			continue
		}
		who := string(l.Role)
		if l.Tool != "" {
			who += " (" + l.Tool + ")"
		}
		text := strings.Join(strings.Fields(l.Text), " ")
		if utf8.RuneCountInString(text) > preservedRunes {
			text = string([]rune(text)[:preservedRunes]) + "…"
		}
		lines = append(lines, fmt.Sprintf("- [%d] %s: %s", l.Seq, who, text))
	}
	if lines == nil {
		return ""
	}
	section := preservedHeading + "\n" + strings.Join(lines, "\n")
	for utf8.RuneCountInString(section) > preservedSection {
		section = dropOldest(section)
	}
	return section
}

const droppedMark = "- (older ones are left out)"

// dropOldest takes the first message out of a section; "" when it was the last.
func dropOldest(section string) string {
	lines := strings.Split(section, "\n")[1:]
	if lines[0] == droppedMark {
		lines = lines[1:]
	}
	if len(lines) <= 1 {
		return ""
	}
	return strings.Join(slices.Concat([]string{preservedHeading, droppedMark}, lines[1:]), "\n")
}
