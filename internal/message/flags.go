package message

import "strings"

// heartbeatOK is what an agent answers to a heartbeat when nothing is to be
// done.
const heartbeatOK = "HEARTBEAT_OK"

// flags tells what can only be said of the whole message.
func (e *envelope) flags(m *Message) Flags {
	var f Flags
	stop := stringOf(e.stop)
	failed := stop == "error" || stop == "aborted"
	if m.Role == Assistant && failed {
		f |= Aborted
	}
	if string(e.exclude) == "true" || nothingToSee(m, failed) || !known(stringOf(e.role)) || nameless(m) {
		f |= Hidden
	}
	if heartbeat(m, e.provenance) {
		f |= Heartbeat
	}
	return f
}

// nothingToSee reports a message that would be empty in front of a model.
// Providers refuse messages of blanks only, so blanks count as nothing. A
// result is never empty: its call needs it.
func nothingToSee(m *Message, failed bool) bool {
	if m.Role == Result {
		return false
	}
	reasoned := false
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch b.Kind {
		case ToolCall, ToolResult, Image:
			return false
		case Text:
			if strings.TrimSpace(b.Text) != "" {
				return false
			}
		case Thinking:
			reasoned = reasoned || b.Text != ""
		}
	}
	return m.Role != Assistant || !reasoned || failed
}

// known reports a role that some dialect has. Hosts add roles for notes of
// their own, which are not for models.
func known(role string) bool {
	switch role {
	case "user", "assistant", "system", "developer", "tool", "function", "toolResult",
		"custom", "bashExecution", "branchSummary", "compactionSummary":
		return true
	}
	return false
}

// nameless reports a tool call without an id. No provider takes it, and no
// result can say that it answers it.
func nameless(m *Message) bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == ToolCall && b.Call.ID == "" {
			return true
		}
	}
	return false
}

func heartbeat(m *Message, provenance []byte) bool {
	switch m.Role {
	case User:
		return stringOf(member(provenance, "sourceTool")) == "heartbeat"
	case Assistant:
		var said strings.Builder
		for i := range m.Blocks {
			switch b := &m.Blocks[i]; b.Kind {
			case Text:
				said.WriteString(b.Text)
			case Thinking:
			default:
				return false
			}
			if len(said.String()) > 4*len(heartbeatOK) && strings.TrimSpace(said.String()) != heartbeatOK {
				return false
			}
		}
		return strings.TrimSpace(said.String()) == heartbeatOK
	}
	return false
}
