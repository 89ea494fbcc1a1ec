package message_test

import (
	"strings"

	"github.com/engined/engined/internal/message"
)

// visibleText is what a reader of the conversation sees: texts, results, and calls as name and arguments, a line break
// between them. Reasoning and images are left out.
func visibleText(m message.Message) string {
	var parts []string
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case message.Text, message.ToolResult:
			if b.Text != "" {
				parts = append(parts, b.Text)
			}
		case message.ToolCall:
			parts = append(parts, strings.TrimSpace(b.Call.Name+" "+b.Call.Args))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts, "\n")
}
