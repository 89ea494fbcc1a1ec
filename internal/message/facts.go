package message

import "strings"

// Facts derives what the log keeps beside the body. est estimates the tokens
// of a message shown whole; a Hidden one costs nothing, for it is never shown.
func (m Message) Facts(est func(Message) int) Facts {
	f := Facts{Dialect: m.Dialect, Role: m.Role, Flags: m.Flags}
	if !m.Flags.Has(Hidden) && est != nil {
		f.Tokens = est(m)
	}
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case ToolCall:
			f.Calls = append(f.Calls, b.Call.ID)
		case ToolResult:
			f.Results = append(f.Results, b.ResultOf)
		}
	}
	return f
}

// VisibleText is what a reader of the conversation sees, for search and
// summaries: texts, results, and calls as name and arguments, a line break
// between them. Reasoning and images are left out.
func VisibleText(m Message) string {
	var parts []string
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case Text, ToolResult:
			if b.Text != "" {
				parts = append(parts, b.Text)
			}
		case ToolCall:
			parts = append(parts, strings.TrimSpace(b.Call.Name+" "+b.Call.Args))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts, "\n")
}
