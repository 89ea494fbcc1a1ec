package message

// dialectMarks gathers what in a message is spelled as only one dialect does.
type dialectMarks struct {
	openclaw, openai, anthropic bool
	fixed                       Dialect
}

// role records a dialect that the role alone proves.
func (d *dialectMarks) role(known Dialect) { d.fixed = known }

// decide names the dialect. Where marks contradict (hosts add members of their
// own to provider messages) the more specific spelling wins: a role, then
// OpenClaw's members, then OpenAI's, then Anthropic's.
func (d *dialectMarks) decide() Dialect {
	switch {
	case d.fixed != Neutral:
		return d.fixed
	case d.openclaw:
		return OpenClaw
	case d.openai:
		return OpenAI
	case d.anthropic:
		return Anthropic
	}
	return Neutral
}
