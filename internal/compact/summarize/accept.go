package summarize

import (
	"errors"
	"fmt"
	"strings"
)

// Why a text may not stand in for its source. The words in a text are no
// reason: a good summary may well mention "401 Unauthorized".
var (
	// ErrEmpty: nothing but blanks.
	ErrEmpty = errors.New("the summary is empty")
	// ErrEcho: the source itself, or a long piece from its start.
	ErrEcho = errors.New("the summary repeats its source")
	// ErrTooLong: over the tokens asked for.
	ErrTooLong = errors.New("the summary is longer than asked for")
	// ErrNotSmaller: it would take as much as what it replaces.
	ErrNotSmaller = errors.New("the summary is not smaller than its source")
	// ErrNoRoom: the tokens asked for hold no text at all.
	ErrNoRoom = errors.New("no room for a summary")
)

// Accept holds a result against its request.
func Accept(req Request, res Result) error {
	text := strings.TrimSpace(res.Text)
	if text == "" {
		return ErrEmpty
	}
	n := req.Estimate(res.Text)
	if req.SourceTokens > 0 && n >= req.SourceTokens {
		return fmt.Errorf("%w: %d of %d tokens", ErrNotSmaller, n, req.SourceTokens)
	}
	if n > req.MaxTokens {
		return fmt.Errorf("%w: %d of %d tokens", ErrTooLong, n, req.MaxTokens)
	}
	if echoes(req, text) {
		return ErrEcho
	}
	return nil
}

// echoLength is how many bytes of the source's start, word for word, are an echo:
// more than any quotation that a summary has reason to start with.
const echoLength = 400

// echoes looks at messages only: older summaries that fit may well be taken
// over word for word.
func echoes(req Request, text string) bool {
	var parts []string
	for _, l := range req.Lines {
		parts = append(parts, l.Text)
	}
	source := words(strings.Join(parts, "\n"))
	text = words(text)
	if len(source) >= echoLength && strings.Contains(text, source) {
		return true
	}
	return len(text) >= echoLength && strings.HasPrefix(source, text)
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }
