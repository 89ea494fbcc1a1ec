package message

import "errors"

// ErrNothingLeft: a message holds tool results and nothing else.
var ErrNothingLeft = errors.New("message: nothing but tool results")

// WithoutResults returns a copy of an Anthropic message without its
// tool_result blocks, so that the words of the user beside them can be shown
// where the results can't be. All else stays byte for byte: the other blocks
// and their order, members, number text, escapes, and what stands between. A
// message without such blocks comes back as it is; with nothing beside them the
// error is ErrNothingLeft, and *InvalidError where body is no JSON object.
func WithoutResults(body []byte) ([]byte, error) {
	s := scanner{data: body}
	if s.peek() != '{' {
		return nil, &InvalidError{Reason: "not a JSON object", Offset: s.pos}
	}
	var content bounds
	for m := s.object(); m.next(); {
		if at := s.bounds(); string(m.key) == "content" {
			content = at
		}
	}
	if s.end(); s.err != nil {
		return nil, s.err
	}
	if content.from == content.to || body[content.from] != '[' {
		return body, nil
	}
	var blocks []bounds
	s = scanner{data: body[:content.to], pos: content.from}
	for it := s.array(); it.next(); {
		blocks = append(blocks, s.bounds())
	}
	out := make([]byte, 0, len(body))
	kept := 0
	for i, at := range blocks {
		block := body[at.from:at.to]
		if block[0] == '{' && stringOf(member(block, "type")) == "tool_result" {
			continue
		}
		if kept == 0 {
			out = append(out, body[:blocks[0].from]...)
		} else {
			out = append(out, body[blocks[i-1].to:at.from]...)
		}
		out = append(out, block...)
		kept++
	}
	if kept == len(blocks) {
		return body, nil
	}
	if kept == 0 {
		return nil, ErrNothingLeft
	}
	return append(out, body[blocks[len(blocks)-1].to:]...), nil
}
