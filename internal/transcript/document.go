package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// list is the array of messages that a document or a run holds; nil when it
// holds none.
func (o members) list() []json.RawMessage {
	for _, name := range [...]string{"messages", "traj", "history"} {
		var list []json.RawMessage
		if json.Unmarshal(o[name], &list) == nil && list != nil {
			return list
		}
	}
	return nil
}

// document reads a file that is one JSON value: {messages: […]}, an array of
// messages, or an array of runs each with its own. false means that it is
// none of them, and nothing was handed on.
func (rd *reader) document(ctx context.Context, text []byte) (bool, error) {
	text = bytes.TrimSpace(text)
	if text[0] == '{' {
		var o members
		if json.Unmarshal(text, &o) != nil || o.str("type") != "" {
			return false, nil //nolint:nilerr // not this format
		}
		list := o.list()
		if list == nil {
			return false, nil
		}
		rd.is(Chat)
		if _, ok := o["system"]; ok {
			rd.report.Skipped["system"]++
		}
		return true, rd.messages("", list, 0)
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil || len(list) == 0 {
		return false, nil //nolint:nilerr // not this format
	}
	var first members
	if json.Unmarshal(list[0], &first) != nil {
		return false, nil //nolint:nilerr // not this format
	}
	if first.str("role") != "" {
		rd.is(Chat)
		return true, rd.messages("", list, 0)
	}
	if first.list() == nil {
		return false, nil
	}
	rd.is(Chat)
	for i, run := range list {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		var o members
		if json.Unmarshal(run, &o) != nil || o.list() == nil {
			rd.broken(i+1, "run without messages")
			continue
		}
		name := "run-" + strconv.Itoa(i)
		if id := o["task_id"]; len(id) > 0 {
			if s := o.str("task_id"); s != "" {
				id = json.RawMessage(s)
			}
			name += "-task-" + string(id)
		}
		if err := rd.messages(name, o.list(), 0); err != nil {
			return true, err
		}
	}
	return true, nil
}

// noDocument says why valid JSON is no document.
func noDocument(text []byte) string {
	text = bytes.TrimSpace(text)
	var list []json.RawMessage
	switch {
	case text[0] == '{':
		return "a JSON object that holds no messages"
	case json.Unmarshal(text, &list) == nil && len(list) == 0:
		return "an empty JSON array"
	}
	return "a JSON array whose entries are no messages"
}

// messages hands on a list of messages as one session. line is where the list
// stands, 0 when each message is told by its own number.
func (rd *reader) messages(session string, list []json.RawMessage, line int) error {
	for i, m := range list {
		at := line
		if at == 0 {
			at = i + 1
		}
		switch {
		case len(m) == 0 || m[0] != '{':
			rd.broken(at, "message is not an object")
		case !utf8.Valid(m):
			rd.broken(at, "not valid UTF-8")
		default:
			if err := rd.emit(Entry{Session: session, Kind: "message", Message: m, Line: at}); err != nil {
				return err
			}
		}
	}
	return nil
}
