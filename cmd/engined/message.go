package main

import (
	"encoding/json"
	"strings"

	"github.com/engined/engined/internal/message"
)

// messageLine is the first of what a message says, on one line.
func messageLine(raw json.RawMessage, atMost int) string {
	var text string
	if json.Unmarshal(raw, &text) == nil { // not a message but plain text
		return oneLine(text, atMost)
	}
	m, err := message.Read(raw)
	if err != nil {
		return oneLine(string(raw), atMost)
	}
	var b strings.Builder
	for _, block := range m.Blocks {
		switch block.Kind {
		case message.ToolCall:
			b.WriteString("→ " + block.Call.Name + " " + block.Call.Args)
		case message.Image:
			b.WriteString("[image]")
		case message.Thinking:
			b.WriteString("(" + block.Text + ")")
		default:
			b.WriteString(block.Text)
		}
		b.WriteByte(' ')
		if atMost > 0 && b.Len() > 4*atMost {
			break
		}
	}
	return oneLine(b.String(), atMost)
}

// roleOf is the role that a message gives itself.
func roleOf(raw json.RawMessage) string {
	var m struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(raw, &m) // a message without a role shows none
	return oneLine(m.Role, 24)
}
