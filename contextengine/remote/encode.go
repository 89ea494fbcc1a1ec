package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/engined/engined/contextengine"
)

// absent, as a nil pointer, shadows a member of an embedded struct so that it is
// left out: encoding/json rewrites the raw values it marshals (it drops blanks
// and escapes <>&), so they are added behind it, as they are.
type absent struct{}

// member is one member of an object, copied byte for byte.
type member struct {
	name string
	raw  json.RawMessage
	list []json.RawMessage
	// isList tells an empty list from no member.
	isList bool
}

// one is a raw member; nil is left out.
func one(name string, raw json.RawMessage) member { return member{name: name, raw: raw} }

// many are messages, always written.
func many(list []json.RawMessage) member {
	return member{name: "messages", list: list, isList: true}
}

// given are messages that are left out where they are nil.
func given(list []json.RawMessage) member {
	return member{name: "messages", list: list, isList: list != nil}
}

// object marshals v, which must be a struct, and adds the members.
func object(v any, members ...member) ([]byte, error) {
	size := 256
	for _, m := range members {
		size += len(m.name) + len(m.raw) + 8
		for _, raw := range m.list {
			size += len(raw) + 1
		}
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	b.Truncate(b.Len() - len("}\n"))
	for _, m := range members {
		if m.raw == nil && !m.isList {
			continue
		}
		if b.Bytes()[b.Len()-1] != '{' {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", m.name)
		if !m.isList {
			if err := checkRaw(m.name, m.raw); err != nil {
				return nil, err
			}
			b.Write(m.raw)
			continue
		}
		b.WriteByte('[')
		for i, raw := range m.list {
			if err := checkMessage(m.name, raw); err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(raw)
		}
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// checkRaw refuses a value that would break the body it is copied into.
func checkRaw(field string, raw json.RawMessage) error {
	switch {
	case !utf8.Valid(raw):
		return invalid(field, "is not valid UTF-8")
	case !json.Valid(raw):
		return invalid(field, "is not valid JSON")
	}
	return nil
}

// checkMessage refuses what is not a JSON object.
func checkMessage(field string, raw json.RawMessage) error {
	if !isObject(raw) {
		return invalid(field, "a message must be a JSON object")
	}
	return checkRaw(field, raw)
}

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// isInvalid reports an error of checkRaw or checkMessage.
func isInvalid(err error) bool {
	var e *contextengine.InvalidError
	return errors.As(err, &e)
}
