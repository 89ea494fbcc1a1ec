package api

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/engined/engined/internal/message"
)

// big is the member of a request that holds its messages. encoding/json walks
// what it decodes two or three times and slowly; messages are most of a body
// and only have to be valid. So they are lifted out, checked by the message
// scanner, and the little that is left goes through encoding/json. Whatever is
// odd goes through it whole, so errors are the same either way.
type big struct {
	name string
	// take keeps the member's value, or refuses it.
	take func(span []byte) bool
}

// unmarshal decodes the body with its big member lifted out; not done means
// that nothing can be said and v may be half filled.
func (m big) unmarshal(body []byte, v any) (done bool, err error) {
	from, to, ok := lift(body, m.name)
	if !ok {
		return false, nil
	}
	rest := bodies.Get().(*bytes.Buffer)
	defer recycle(&bodies, rest)
	rest.Write(body[:from])
	rest.WriteString("null")
	rest.Write(body[to:])
	if json.Unmarshal(rest.Bytes(), v) != nil || !m.take(body[from:to]) {
		return false, nil
	}
	return true, checkText(rest.Bytes())
}

// lift finds the value of a top-level member. It does not validate: with null
// in the value's place the rest must still be valid JSON, and the value must be
// valid by itself. It gives up where encoding/json might take another member
// for this one: it ignores case, lets the last of two win and reads escapes.
func lift(body []byte, name string) (from, to int, ok bool) {
	i := blanks(body, 0)
	if i == len(body) || body[i] != '{' {
		return 0, 0, false
	}
	for {
		i = blanks(body, i+1)
		if i == len(body) || body[i] != '"' {
			return 0, 0, false
		}
		end := closing(body, i)
		if end < 0 {
			return 0, 0, false
		}
		key := body[i+1 : end]
		if i = blanks(body, end+1); i == len(body) || body[i] != ':' || !plainKey(key) {
			return 0, 0, false
		}
		start := blanks(body, i+1)
		if i = valueEnd(body, start); i < 0 {
			return 0, 0, false
		}
		if bytes.EqualFold(key, []byte(name)) {
			if ok || string(key) != name || (body[start] != '{' && body[start] != '[') {
				return 0, 0, false
			}
			from, to, ok = start, i, true
		}
		switch i = blanks(body, i); {
		case i == len(body):
			return 0, 0, false
		case body[i] == '}':
			return from, to, ok
		case body[i] != ',':
			return 0, 0, false
		}
	}
}

// plainKey reports a member name that only looks like what it is.
func plainKey(key []byte) bool {
	for _, b := range key {
		if b == '\\' || b < 0x20 || b >= 0x80 {
			return false
		}
	}
	return true
}

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// closing is the index of the quote that ends the string begun at i, or -1.
func closing(b []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for b[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		at++
	}
}

// valueEnd is the index behind the value begun at i, or -1.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = closing(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // the end of what holds a scalar
			}
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// liftMessage lifts the message of a request.
func (c *call) liftMessage(into *json.RawMessage) big {
	return big{name: "message", take: func(span []byte) bool {
		if !c.wellFormed(span) {
			return false
		}
		*into = bytes.Clone(span)
		return true
	}}
}

// liftMessages lifts a request's list of messages.
func (c *call) liftMessages(into *messageList) big { return c.liftList("messages", into) }

// liftList lifts a list of objects.
func (c *call) liftList(name string, into *messageList) big {
	return big{name: name, take: func(span []byte) bool {
		items := []json.RawMessage{}
		i := blanks(span, 1)
		if span[0] != '[' {
			return false
		}
		if span[i] == ']' {
			into.items = items
			return i == len(span)-1
		}
		for {
			end := valueEnd(span, i)
			if end < 0 || len(items) == into.most || !c.wellFormed(span[i:end]) {
				return false
			}
			// A clone each, so that one kept message does not hold them all.
			items = append(items, bytes.Clone(span[i:end]))
			switch i = blanks(span, end); span[i] {
			case ',':
				i = blanks(span, i+1)
			case ']':
				into.items = items
				return i == len(span)-1
			default:
				return false
			}
		}
	}}
}

// wellFormed reports one JSON object that is not too deep. Its size is judged
// later, with the field's name at hand.
func (c *call) wellFormed(m []byte) bool {
	return len(m) > 0 && m[0] == '{' &&
		message.Check(m, message.Limits{Bytes: math.MaxInt, Depth: c.api.cfg.Limits.Nesting}) == nil
}
