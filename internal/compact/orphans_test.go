package compact

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/message"
)

// A call that was never answered is nothing that happened; an aborted message
// that made it is not told of, a whole one without it.
func TestF122OrphanCallsNeverReachTheSummarizer(t *testing.T) {
	t.Parallel()
	call := func(id string) message.Block {
		return message.Block{Kind: message.ToolCall, Call: message.Call{ID: id, Name: "run", Args: `{"id":"` + id + `"}`}}
	}
	said := func(text string) message.Block { return message.Block{Kind: message.Text, Text: text} }
	msgs := []SourceMessage{
		{Seq: 1, Message: message.Message{Role: message.User, Blocks: []message.Block{said("go")}}},
		{Seq: 2, Message: message.Message{Role: message.Assistant, Flags: message.Aborted, Blocks: []message.Block{said("I will dele"), call("a")}}},
		{Seq: 3, Message: message.Message{Role: message.Assistant, Blocks: []message.Block{said("two at once"), call("b"), call("c")}}},
		{Seq: 4, Message: message.Message{Role: message.Result, Blocks: []message.Block{{Kind: message.ToolResult, ResultOf: "b", Text: "fine"}}}},
		{Seq: 5, Message: message.Message{Role: message.Assistant, Flags: message.Aborted, Blocks: []message.Block{said("as far as I ca")}}},
		// The id comes again, and this one is answered.
		{Seq: 6, Message: message.Message{Role: message.Assistant, Blocks: []message.Block{call("a")}}},
		{Seq: 7, Message: message.Message{Role: message.Result, Blocks: []message.Block{{Kind: message.ToolResult, ResultOf: "a", Text: "done"}}}},
	}
	var got []string
	for _, l := range linesOf(msgs) {
		got = append(got, fmt.Sprintf("%d %s %s", l.Seq, l.Role, l.Text))
	}
	want := []string{
		"1 user go", "3 assistant two at once", `3 tool call {"id":"b"}`, "4 tool result fine", "5 assistant as far as I ca",
		`6 tool call {"id":"a"}`, "7 tool result done",
	}
	if !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
