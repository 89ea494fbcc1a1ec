package message

import "unicode/utf8"

// Limits bound what is stored as one message. A zero field means the default.
type Limits struct {
	// Bytes is the largest body; 8 MiB by default.
	Bytes int
	// Depth is how many containers may be open at once, the message's own
	// object included; 512 by default.
	Depth int
}

// The defaults of Limits.
const (
	DefaultBytes = 8 << 20
	DefaultDepth = 512
)

// Check tells whether body can be stored as a message: one JSON object in
// valid UTF-8 within the limits. Escaped NULs and lone surrogates, members
// that come twice and numbers of any length are fine. The error is an
// *InvalidError.
func Check(body []byte, limits Limits) error {
	if limits.Bytes == 0 {
		limits.Bytes = DefaultBytes
	}
	if limits.Depth == 0 {
		limits.Depth = DefaultDepth
	}
	if len(body) > limits.Bytes {
		return &InvalidError{Reason: "too large", Limit: int64(limits.Bytes), TooLarge: true}
	}
	s := scanner{data: body}
	if s.peek() != '{' {
		return &InvalidError{Reason: "not a JSON object", Offset: s.pos}
	}
	s.skip(limits.Depth)
	s.end()
	if s.err != nil {
		return s.err
	}
	if !utf8.Valid(body) {
		return &InvalidError{Reason: "not valid UTF-8"}
	}
	return nil
}
