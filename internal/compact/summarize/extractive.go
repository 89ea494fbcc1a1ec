package summarize

import (
	"context"
	"fmt"
)

// Extractive keeps the parts of its source that matter most, word for word:
// what users asked (open asks last), decisions, rules, work left, failures, files
// and exact identifiers, and a short timeline that cites where it was said. It
// needs no model; the same request gives the same text. Older summaries are
// merged item by item, so nothing is retold and nothing drifts.
type Extractive struct{}

// Name implements Summarizer.
func (Extractive) Name() string { return "extractive" }

// Version implements Summarizer. It changes with the text that Summarize gives.
func (Extractive) Version() string { return "extractive-2" }

// Summarize implements Summarizer. It fails only if ctx is done, or with
// ErrNoRoom if not even a few words fit.
func (e Extractive) Summarize(ctx context.Context, req Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	limit := req.MaxTokens
	if req.SourceTokens > 0 {
		limit = min(limit, req.SourceTokens-1)
	}
	var items []item
	if len(req.Children) > 0 {
		items = fromChildren(req.Children)
	} else {
		items = fromLines(req.Lines)
	}
	if len(items) == 0 {
		items = append(items, item{section: timeline, text: fmt.Sprintf("%d messages without text", len(req.Lines))})
	}
	text := fill(items, limit, req.Estimate)
	if text == "" {
		return Result{}, fmt.Errorf("%w: %d tokens", ErrNoRoom, limit)
	}
	return Result{Text: text, Model: "none", PromptVersion: e.Version()}, nil
}
