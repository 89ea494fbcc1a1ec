package compact

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
// correction, and an appendix follows: the newest turns word for word, what
// failed, the files that were read and changed.
type Structured struct{ Inner summarize.Summarizer }

// auditTokens: with less there is no room for sections.
const auditTokens = 400

var requiredHeadings = []string{
	"## Decisions", "## Open TODOs", "## Constraints/Rules", "## Pending user asks", "## Exact identifiers",
}

// Name is the inner summarizer's: it writes the text.
func (s Structured) Name() string { return s.Inner.Name() }

// Version implements summarize.Summarizer.
func (s Structured) Version() string { return "native-2/" + s.Inner.Version() }

// Summarize implements summarize.Summarizer. It fails with ErrHeadings where the
// sections are missing after a correction too.
func (s Structured) Summarize(ctx context.Context, req summarize.Request) (summarize.Result, error) {
	more, inner := appendixOf(req)
	// The body keeps at least half of the room.
	for s.cost(req, more.String()) > req.MaxTokens/2 {
		if !more.shrink() {
			break
		}
	}
	suffix := more.String()
	inner.MaxTokens -= s.cost(req, suffix)
	res, err := s.audited(ctx, inner)
	if suffix != "" && errors.Is(err, summarize.ErrNoRoom) {
		suffix, inner.MaxTokens = "", req.MaxTokens // a summary comes first
		res, err = s.audited(ctx, inner)
	}
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
	if suffix == "" {
		return 0
	}
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
