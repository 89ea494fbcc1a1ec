package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/engined/engined/contextengine"
)

// messageList is a JSON array of messages, taken apart without reading them.
// It counts before it keeps: a body full of empty items would otherwise cost
// many times its size.
type messageList struct {
	// field is its name in the request; "messages" by default.
	field string
	items []json.RawMessage
	most  int
}

// UnmarshalJSON copies every item, so that one kept message does not hold the
// whole request in memory.
func (l *messageList) UnmarshalJSON(data []byte) error {
	spans, err := elements(cmp.Or(l.field, "messages"), data, l.most)
	if err != nil || spans == nil {
		return err
	}
	l.items = make([]json.RawMessage, len(spans))
	for i, s := range spans {
		l.items[i] = bytes.Clone(s)
	}
	return nil
}

// stringList is a JSON array of strings with the same care.
type stringList struct {
	field string
	items []string
	most  int
}

// UnmarshalJSON reads the strings; null items are refused like other types.
func (l *stringList) UnmarshalJSON(data []byte) error {
	spans, err := elements(l.field, data, l.most)
	if err != nil || spans == nil {
		return err
	}
	l.items = make([]string, len(spans))
	for i, s := range spans {
		if s[0] != '"' || json.Unmarshal(s, &l.items[i]) != nil {
			return &contextengine.InvalidError{Field: fmt.Sprintf("%s[%d]", l.field, i), Reason: "must be a string"}
		}
	}
	return nil
}

// elements are the items of a JSON array, as spans of data; nil for null, which
// is the same as no array. data is valid JSON, so brackets and quotes suffice.
func elements(field string, data []byte, most int) ([][]byte, error) {
	if string(data) == "null" {
		return nil, nil
	}
	if len(data) == 0 || data[0] != '[' {
		return nil, &contextengine.InvalidError{Field: field, Reason: "must be an array"}
	}
	spans := [][]byte{}
	depth, start := 0, 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if (data[i] == ',' && depth == 1) || depth == 0 {
			item := bytes.Trim(data[start:i], " \t\r\n")
			if len(item) > 0 {
				if len(spans) == most {
					return nil, &contextengine.InvalidError{
						Field: field, Reason: fmt.Sprintf("more than %d items", most), Limit: int64(most), TooLarge: true,
					}
				}
				spans = append(spans, item)
			}
			start = i + 1
		}
	}
	return spans, nil
}

// stringEnd is the index of the quote that ends the string begun at i.
func stringEnd(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}
