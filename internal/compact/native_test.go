package compact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/tokens"
)

// inOrder writes one text after the other and keeps what it was asked.
type inOrder struct {
	texts []string
	asked []summarize.Request
}

func (s *inOrder) Name() string    { return "scripted" }
func (s *inOrder) Version() string { return "1" }

func (s *inOrder) Summarize(_ context.Context, req summarize.Request) (summarize.Result, error) {
	s.asked = append(s.asked, req)
	text := s.texts[0]
	s.texts = s.texts[1:]
	return summarize.Result{Text: text}, nil
}

func sectioned() string { return strings.Join(requiredHeadings, "\nnone\n") + "\nnone" }

func request(lines ...summarize.Line) summarize.Request {
	return summarize.Request{Level: 1, Lines: lines, MaxTokens: 1000, SourceTokens: 9000, Estimate: tokens.Text}
}

func line(seq int64, role summarize.Role, text string) summarize.Line {
	return summarize.Line{Seq: seq, Role: role, Text: text}
}

func TestF120MissingHeadingsAreCorrectedOnce(t *testing.T) {
	t.Parallel()
	near := strings.Replace(sectioned(), "## Decisions", "## Decision", 1)
	for name, c := range map[string]struct {
		texts []string
		calls int
		err   error
	}{
		"there at once":        {[]string{sectioned()}, 1, nil},
		"there when corrected": {[]string{near, sectioned()}, 2, nil},
		"twice is not once":    {[]string{sectioned() + "\n## Decisions", sectioned()}, 2, nil},
		"still missing":        {[]string{near, near}, 2, ErrHeadings},
	} {
		inner := &inOrder{texts: c.texts}
		res, err := Structured{inner}.Summarize(t.Context(), request(line(1, summarize.Assistant, "a")))
		if !errors.Is(err, c.err) || len(inner.asked) != c.calls {
			t.Errorf("%s: %d calls, %v", name, len(inner.asked), err)
		}
		if c.calls == 2 && !strings.Contains(inner.asked[1].Instructions, "## Decisions") {
			t.Errorf("%s: the correction says %q", name, inner.asked[1].Instructions)
		}
		if err == nil && res.Text != sectioned() {
			t.Errorf("%s: %q", name, res.Text)
		}
	}
}

// Preserved turns contain no headings that count for the summary's own.
func TestF124PreservedHeadingsDoNotCount(t *testing.T) {
	t.Parallel()
	inner := &inOrder{texts: []string{"nothing", "nothing"}}
	_, err := Structured{inner}.Summarize(t.Context(), request(line(1, summarize.User, sectioned())))
	if !errors.Is(err, ErrHeadings) || len(inner.asked) != 2 {
		t.Errorf("%d calls, %v", len(inner.asked), err)
	}
}

func TestF119NewestTurnsFollowWordForWord(t *testing.T) {
	t.Parallel()
	var lines []summarize.Line
	for turn := range int64(5) {
		lines = append(lines,
			line(10*turn, summarize.User, fmt.Sprintf("question %d", turn)),
			summarize.Line{Seq: 10*turn + 1, Role: summarize.Call, Tool: "ls", Text: "{}"},
			summarize.Line{Seq: 10*turn + 2, Role: summarize.ToolResult, Tool: "ls", Text: "main.go"},
			line(10*turn+3, summarize.Assistant, fmt.Sprintf("answer\n%d", turn)))
	}
	inner := &inOrder{texts: []string{sectioned(), sectioned()}}
	s := Structured{inner}
	first, err := s.Summarize(t.Context(), request(lines...))
	if err != nil {
		t.Fatal(err)
	}
	want := `## Recent turns preserved verbatim
- [20] user: question 2
- [22] tool result (ls): main.go
- [23] assistant: answer 2
- [30] user: question 3
- [32] tool result (ls): main.go
- [33] assistant: answer 3
- [40] user: question 4
- [42] tool result (ls): main.go
- [43] assistant: answer 4`
	if body, section, _ := strings.Cut(first.Text, "\n\n## Recent"); body != sectioned() || "## Recent"+section != want {
		t.Fatalf("%s", first.Text)
	}
	// Retold, the newest child's turns stay; an older child's do not.
	retold, err := s.Summarize(t.Context(), summarize.Request{
		Level: 2, MaxTokens: 1000, SourceTokens: 2000, Estimate: tokens.Text,
		Children: []summarize.Child{{Text: strings.ReplaceAll(first.Text, "question", "old question")}, {Text: first.Text}},
	})
	if err != nil || !strings.HasSuffix(retold.Text, want) || strings.Contains(retold.Text, "old question") {
		t.Errorf("%s, %v", retold.Text, err)
	}
}

// However little room there is, what is written fits, and the summary proper has
// at least half of the room.
func TestStructuredFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []summarize.Line
		for i := range rapid.IntRange(1, 30).Draw(t, "lines") {
			role := rapid.SampledFrom([]summarize.Role{summarize.User, summarize.Assistant, summarize.ToolResult, summarize.Call}).Draw(t, "role")
			lines = append(lines, line(int64(i), role, strings.Repeat("wörd 漢 ", rapid.IntRange(0, 400).Draw(t, "words"))))
		}
		req := request(lines...)
		req.MaxTokens = rapid.IntRange(30, 3000).Draw(t, "room")
		res, err := Structured{summarize.Extractive{}}.Summarize(context.Background(), req)
		if errors.Is(err, summarize.ErrNoRoom) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := tokens.Text(res.Text); n > req.MaxTokens {
			t.Fatalf("%d tokens of %d", n, req.MaxTokens)
		}
		if _, section, ok := strings.Cut(res.Text, preservedHeading); ok && tokens.Text(section) > req.MaxTokens/2 {
			t.Fatalf("the preserved turns take %d of %d tokens", tokens.Text(section), req.MaxTokens)
		}
	})
}
