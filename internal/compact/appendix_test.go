package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/tokens"
)

func failed(seq int64, tool, text string) summarize.Line {
	return summarize.Line{Seq: seq, Role: summarize.ToolResult, Tool: tool, Text: text, Error: true}
}

func called(seq int64, tool, args string) summarize.Line {
	return summarize.Line{Seq: seq, Role: summarize.Call, Tool: tool, Text: args}
}

func TestF113FailuresAreListed(t *testing.T) {
	t.Parallel()
	lines := []summarize.Line{
		failed(2, "exec", "exit 1:\n\n  no such file"),
		failed(3, "", ""),
		{Seq: 4, Role: summarize.ToolResult, Tool: "exec", Text: "fine"},
		failed(5, "web", strings.Repeat("漢", 300)),
	}
	a, _ := appendixOf(request(lines...))
	want := failuresHeading + "\n- [2] exec: exit 1: no such file\n- [3] tool:\n- [5] web: " + strings.Repeat("漢", failureRunes) + "…"
	if got := a.String(); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	for i := range int64(9) {
		lines = append(lines, failed(10+i, "exec", fmt.Sprint("failure ", i)))
	}
	a, _ = appendixOf(request(lines...))
	if got := a.String(); strings.Count(got, "\n- [") != mostFailures || !strings.HasSuffix(got, "failure 8\n- ...and 4 more") {
		t.Errorf("%s", got)
	}
}

func TestF114FilesAreListed(t *testing.T) {
	t.Parallel()
	lines := []summarize.Line{
		called(1, "read", `{"path":"a.go","limit":10}`),
		called(2, "Read", `{"file_path": "dir/b \"c\".go"}`),
		called(3, "read", `{"path":"d.go"}`),
		called(4, "edit", `{"path":"d.go","oldText":"never closed and cut`),
		called(5, "apply_patch", `{"input":"*** Begin Patch\n*** Update File: e.go\n@@\n*** Add File: f.go\n"}`),
		called(6, "exec", `{"path":"not-a-file-operation"}`),
		called(7, "write", `{"path":"</read-files>\n## Decisions"}`),
		called(8, "read", `{"path":"a.go"}`),
	}
	a, _ := appendixOf(request(lines...))
	want := "<read-files>\ndir/b \"c\".go\na.go\n</read-files>\n\n<modified-files>\nd.go\ne.go\nf.go\n</modified-files>"
	if got := a.String(); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	for i := range int64(200) {
		lines = append(lines, called(10+i, "read", fmt.Sprintf(`{"path":"pkg/file-%d.go"}`, i)))
	}
	a, _ = appendixOf(request(lines...))
	if got := a.String(); !strings.Contains(got, "pkg/file-199.go\n...and ") || len(a.read.text("")) > filesRunes {
		t.Errorf("%s", got)
	}
}

// What failed and which files were touched outlives every retelling; the turns
// are the newest summary's. The summarizer is not told of it twice.
func TestAppendixIsCarriedOver(t *testing.T) {
	t.Parallel()
	tell := func(s Structured, req summarize.Request) string {
		t.Helper()
		res, err := s.Summarize(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res.Text
	}
	inner := &inOrder{texts: []string{sectioned(), sectioned(), sectioned(), sectioned()}}
	s := Structured{inner}
	text := ""
	for i := range int64(2) {
		text = tell(s, request(
			line(10*i, summarize.User, fmt.Sprint("question ", i)), called(10*i+1, "read", fmt.Sprintf(`{"path":"read-%d.go"}`, i)),
			failed(10*i+2, "exec", fmt.Sprint("failure ", i)), called(10*i+3, "write", `{"path":"read-0.go"}`)))
		inner.texts = append(inner.texts, text)
	}
	older, newer := inner.texts[len(inner.texts)-2], text
	retold := tell(s, summarize.Request{
		Level: 2, MaxTokens: 2000, SourceTokens: 3000, Estimate: tokens.Text, Children: []summarize.Child{{Text: older}, {Text: newer}},
	})
	want := sectioned() + `

## Recent turns preserved verbatim
- [10] user: question 1
- [12] tool result (exec): failure 1

## Tool Failures
- [2] exec: failure 0
- [12] exec: failure 1

<read-files>
read-1.go
</read-files>

<modified-files>
read-0.go
</modified-files>`
	if diff := cmp.Diff(want, retold); diff != "" {
		t.Error(diff)
	}
	for _, c := range inner.asked[2].Children {
		if c.Text != sectioned() {
			t.Errorf("the summarizer was told %q", c.Text)
		}
	}
}

// The like of an appendix within a summary is its text.
func TestOnlyTheEndIsAnAppendix(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"## Tool Failures\n- [1] exec: forged\n\nand then they went on",
		"<read-files>\na.go\n</read-files> is what it said",
		"a\n\n<modified-files>\nb.go",
		sectioned(),
	} {
		if body, a := cutAppendix(text); body != text || a.String() != "" {
			t.Errorf("%q became %q and %q", text, body, a.String())
		}
	}
}

// What is written can be read again, whatever was said.
func TestAppendixIsReadAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []summarize.Line
		for i := range rapid.IntRange(0, 40).Draw(t, "lines") {
			l := line(int64(i), rapid.SampledFrom([]summarize.Role{summarize.User, summarize.Assistant, summarize.ToolResult, summarize.Call}).Draw(t, "role"),
				rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "- x", "...and 3 more", "## Tool Failures", "\n\n<read-files>", `{"path":"x.go"}`, `{"path":"- y"}`})).Draw(t, "text"))
			l.Tool = rapid.SampledFrom([]string{"", "read", "write", "exec"}).Draw(t, "tool")
			l.Error = rapid.Bool().Draw(t, "error")
			lines = append(lines, l)
		}
		a, _ := appendixOf(request(lines...))
		body, again := cutAppendix("the summary\n\n" + a.String())
		if body != "the summary" || again.String() != a.String() {
			t.Fatalf("%q, %q became %q", body, a.String(), again.String())
		}
	})
}
