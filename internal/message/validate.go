package message

// Validate refuses an object that no provider and no host would take for a
// message: one without a role, and a speaker's content that is neither text nor
// a list of blocks. A role that nothing knows is fine: hosts add roles of their
// own, and Read hides them from models. body has passed Check. The error is an
// *InvalidError.
func Validate(body []byte) error {
	s := scanner{data: body}
	if s.peek() != '{' {
		return &InvalidError{Reason: "not a JSON object", Offset: s.pos}
	}
	role, content := bounds{}, bounds{}
	for m := s.object(); m.next(); {
		switch at := s.bounds(); string(m.key) {
		case "role":
			// As in Read, a null says nothing.
			if !isNull(body[at.from:at.to]) {
				role = at
			}
		case "content":
			content = at
		}
	}
	if s.end(); s.err != nil {
		return s.err
	}
	name := body[role.from:role.to]
	switch {
	case len(name) == 0 || string(name) == `""`:
		return &InvalidError{Reason: "role: missing", Offset: role.from}
	case name[0] != '"':
		return &InvalidError{Reason: "role: not a string", Offset: role.from}
	}
	switch stringOf(name) {
	case "user", "assistant", "system", "developer", "tool", "function", "toolResult":
	default:
		return nil
	}
	if v := body[content.from:content.to]; len(v) > 0 && v[0] != '"' && v[0] != '[' && !isNull(v) {
		return &InvalidError{Reason: "content: neither text nor a list of blocks", Offset: content.from}
	}
	return nil
}
