package message

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
