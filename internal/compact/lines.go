package compact

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/message"
)

// SourceMessage is one message to summarize.
type SourceMessage struct {
	Seq     int64
	Message message.Message
	// Body is the stored bytes; they go into the source hash.
	Body []byte
	// RecordedAt stands in where the message has no time of its own.
	RecordedAt time.Time
}

func (m SourceMessage) time() time.Time {
	if m.Message.Timestamp > 0 {
		return time.UnixMilli(m.Message.Timestamp).UTC()
	}
	return m.RecordedAt.UTC()
}

// The runes that a summarizer is shown of one piece. Together with the weight
// of messages in a chunk they bound a request; maxRequest does where a single
// group is larger than a chunk.
const (
	userRunes      = 12000
	assistantRunes = 8000
	argsRunes      = 1500
	resultRunes    = 3000
	leastRunes     = 200
	maxRequest     = 160000
)

// linesOf renders messages as lines, in order, without hidden rows, reasoning,
// the bytes of images and calls that were never answered: a chunk holds groups as
// a whole, so what has no answer in it has none. Of an aborted message with such a call
// nothing is told.
func linesOf(msgs []SourceMessage) []summarize.Line {
	dead := unanswered(msgs)
	for scale := 1; ; scale *= 2 {
		var lines []summarize.Line
		total := 0
		names := map[string]string{}
		for _, m := range msgs {
			if m.Message.Flags.Has(message.Hidden) || m.Message.Flags.Has(message.Aborted) && dead.any(m) {
				continue
			}
			for _, l := range linesOfMessage(m, names, dead, scale) {
				lines = append(lines, l)
				total += utf8.RuneCountInString(l.Text)
			}
		}
		if total <= maxRequest || resultRunes/scale <= leastRunes {
			return lines
		}
	}
}

// callAt is a call by its message and block.
type callAt struct {
	seq   int64
	block int
}

type deadCalls map[callAt]bool

// unanswered are the calls that no result behind them answers. Ids may repeat: a
// result is of the newest call of its id.
func unanswered(msgs []SourceMessage) deadCalls {
	dead, newest := deadCalls{}, map[string]callAt{}
	for _, m := range msgs {
		for i := range m.Message.Blocks {
			switch b := &m.Message.Blocks[i]; b.Kind {
			case message.ToolCall:
				newest[b.Call.ID] = callAt{m.Seq, i}
				dead[newest[b.Call.ID]] = true
			case message.ToolResult:
				delete(dead, newest[b.ResultOf])
			case message.Text, message.Thinking, message.Image:
			}
		}
	}
	return dead
}

func (d deadCalls) any(m SourceMessage) bool {
	for i := range m.Message.Blocks {
		if d[callAt{m.Seq, i}] {
			return true
		}
	}
	return false
}

// linesOfMessage renders one message. names has the tool of each call so far.
func linesOfMessage(m SourceMessage, names map[string]string, dead deadCalls, scale int) []summarize.Line {
	var out []summarize.Line
	add := func(role summarize.Role, tool, text string, runes int) {
		failed := role == summarize.ToolResult && m.Message.Flags.Has(message.IsError)
		if text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")); text == "" && failed {
			text = "(no output)" // that it failed is worth telling
		}
		if text == "" && role != summarize.Call {
			return
		}
		if role != summarize.Call && role != summarize.ToolResult {
			tool = ""
		}
		out = append(out, summarize.Line{
			Seq: m.Seq, Role: role, Tool: tool, Time: m.time(),
			Text:  shorten(text, max(runes/scale, leastRunes)),
			Error: failed,
		})
	}
	images := 0
	for i, b := range m.Message.Blocks {
		switch b.Kind {
		case message.ToolCall:
			names[b.Call.ID] = b.Call.Name
			if dead[callAt{m.Seq, i}] {
				continue
			}
			add(summarize.Call, b.Call.Name, b.Call.Args, argsRunes)
		case message.ToolResult:
			tool := m.Message.ToolName
			if tool == "" {
				tool = names[b.ResultOf]
			}
			add(summarize.ToolResult, tool, b.Text, resultRunes)
		case message.Image:
			images++
		case message.Text:
			role, runes := speaker(m.Message.Role)
			if role == summarize.ToolResult && m.Message.Flags.Has(message.UserText) {
				role, runes = speaker(message.User)
			}
			add(role, m.Message.ToolName, b.Text, runes)
		}
	}
	if images == 0 {
		return out
	}
	// The pictures stay behind; that there were some is worth telling.
	told := "(an image)"
	if images > 1 {
		told = fmt.Sprintf("(%d images)", images)
	}
	if n := len(out); n > 0 {
		out[n-1].Text = strings.TrimSpace(out[n-1].Text + " " + told)
		return out
	}
	role, runes := speaker(m.Message.Role)
	add(role, m.Message.ToolName, told, runes)
	return out
}

func speaker(r message.Role) (summarize.Role, int) {
	switch r {
	case message.User:
		return summarize.User, userRunes
	case message.Assistant:
		return summarize.Assistant, assistantRunes
	case message.Result:
		return summarize.ToolResult, resultRunes
	case message.System:
		return summarize.System, userRunes
	default:
		return summarize.Note, assistantRunes
	}
}

// shorten leaves out the middle: the end of an output tells how it went.
func shorten(s string, runes int) string {
	n := utf8.RuneCountInString(s)
	if n <= runes {
		return s
	}
	all := []rune(s)
	head, tail := runes*2/3, runes/3
	return string(all[:head]) + "\n…\n" + string(all[n-tail:])
}
