package retrieval

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// oldest is the earliest time of a message that is taken for one.
var oldest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// extract makes the parts of one event; an event without text has none.
// toolOf names the tool of a call made earlier in the session.
func extract(e *store.FeedEvent, toolOf func(callID string) string) ([]store.SearchPart, error) {
	base := store.SearchPart{SID: e.SID, Seq: e.Seq, Epoch: e.Epoch, At: e.RecordedAt}
	switch e.Type {
	case events.MessageAppended:
		m, err := message.Read(e.Body)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		base.Role, base.Flags, base.Tokens, base.Speaker = m.Role, e.Facts.Flags, e.Facts.Tokens, search.Clean(m.Name)
		base.At = timeOf(m.Timestamp, e.RecordedAt)
		return partsOf(base, &m, toolOf), nil
	case events.SummaryCreated:
		var b events.SummaryBody
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		base.Kind, base.Tokens = store.SearchSummary, b.Tokens
		base.At = timeOf(b.Timestamp, e.RecordedAt)
		return add(nil, base, b.Text), nil
	}
	return nil, nil
}

// timeOf is the message's own time where it can be one. The log's own stands
// in for hosts that send none, count from something else, or run ahead.
func timeOf(millis int64, recorded time.Time) time.Time {
	t := time.UnixMilli(millis)
	if millis == 0 || t.Before(oldest) || t.After(recorded.Add(24*time.Hour)) {
		return recorded
	}
	return t
}

func partsOf(base store.SearchPart, m *message.Message, toolOf func(string) string) []store.SearchPart {
	var out []store.SearchPart
	var said []string
	flush := func() {
		p := base
		p.Kind = store.SearchMessage
		out = add(out, p, strings.Join(said, "\n"))
		said = nil
	}
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case message.Text:
			said = append(said, b.Text)
		case message.ToolCall:
			flush()
			p := base
			p.Kind, p.Tool = store.SearchCall, search.Clean(b.Call.Name)
			out = add(out, p, b.Call.Name+" "+plainArgs(b.Call.Args))
		case message.ToolResult:
			flush()
			p := base
			p.Kind, p.Tool = store.SearchResult, search.Clean(m.ToolName)
			if p.Tool == "" {
				p.Tool = search.Clean(toolOf(b.ResultOf))
			}
			out = add(out, p, b.Text)
		case message.Thinking, message.Image:
		}
	}
	flush()
	return out
}

func add(out []store.SearchPart, base store.SearchPart, text string) []store.SearchPart {
	for _, t := range search.Parts(text) {
		base.Part, base.Text = int32(len(out)), t
		out = append(out, base)
	}
	return out
}

// plainArgs are a call's arguments as they would be looked for: the values of
// a JSON object in its order, each behind its name, with the escapes of strings
// undone. What is no object stays as it is.
func plainArgs(args string) string {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var b strings.Builder
	depth, key := 0, false
	keys := []bool{}
	for {
		t, err := d.Token()
		if err != nil {
			break
		}
		switch v := t.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
				keys = append(keys, v == '{')
				key = v == '{'
				continue
			}
			depth--
			keys = keys[:len(keys)-1]
			key = depth > 0 && keys[depth-1]
			continue
		case string:
			b.WriteString(v)
		case nil:
			b.WriteString("null")
		default:
			fmt.Fprint(&b, v)
		}
		if depth == 0 {
			return args
		}
		if key {
			b.WriteString(": ")
			key = false
		} else {
			b.WriteByte('\n')
			key = keys[depth-1]
		}
	}
	if depth != 0 || b.Len() == 0 {
		return args
	}
	return strings.TrimRight(b.String(), "\n")
}
