package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// tooManyError says that a list has more items than its reader takes.
type tooManyError struct{ most int }

func (e *tooManyError) Error() string { return fmt.Sprintf("more than %d items", e.most) }

// messageList is a list of JSON objects whose bytes are kept as they came. Set
// most before decoding into it.
type messageList struct {
	most  int
	items []json.RawMessage
	// here tells an empty list from an absent member.
	here bool
}

// UnmarshalJSON splits the list without decoding what is in it.
func (l *messageList) UnmarshalJSON(b []byte) error {
	l.items, l.here = nil, false
	if string(b) == "null" {
		return nil
	}
	if b[0] != '[' {
		return errors.New("messages: a list is expected")
	}
	items, err := split(bytes.Clone(b), l.most)
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	for i, item := range items {
		if !isObject(item) {
			return fmt.Errorf("messages[%d]: a JSON object is expected", i)
		}
	}
	l.items, l.here = items, true
	return nil
}

// maxItems bounds the lists of an answer that are not messages.
const maxItems = 100_000

// bounded is a list of small items that counts them before it makes them: what
// is three bytes on the wire may be a hundred in memory.
type bounded[T any] struct{ items []T }

// UnmarshalJSON refuses a list that is too long.
func (l *bounded[T]) UnmarshalJSON(b []byte) error {
	if string(b) != "null" && b[0] == '[' {
		if _, err := split(b, maxItems); err != nil {
			return err
		}
	}
	return json.Unmarshal(b, &l.items)
}

// split cuts a valid JSON array into its items. They share b's memory.
func split(b []byte, most int) ([]json.RawMessage, error) {
	items := []json.RawMessage{}
	depth, start := 0, -1
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '[', '{':
			if depth++; depth == 1 {
				continue
			}
		case ']', '}':
			if depth--; depth > 0 {
				continue
			}
			return cut(items, b, start, i, most)
		case ',':
			if depth == 1 {
				var err error
				if items, err = cut(items, b, start, i, most); err != nil {
					return nil, err
				}
				start = -1
				continue
			}
		}
		if start < 0 {
			start = i
		}
		if b[i] == '"' {
			i = closing(b, i)
		}
	}
	return nil, errors.New("the list has no end")
}

// cut adds the item that began at start, if any.
func cut(items []json.RawMessage, b []byte, start, end, most int) ([]json.RawMessage, error) {
	if start < 0 {
		return items, nil
	}
	if len(items) == most {
		return nil, &tooManyError{most: most}
	}
	item := bytes.TrimRight(b[start:end], " \t\r\n")
	return append(items, slices.Clip(item)), nil
}

// closing is the index of the quote that ends the valid string begun at i.
func closing(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}
