package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/internal/message"
)

// members are an object's members, as they stand in the file.
type members map[string]json.RawMessage

func (o members) str(name string) string {
	var s string
	if json.Unmarshal(o[name], &s) != nil {
		return ""
	}
	return s
}

func (o members) yes(name string) bool { return string(o[name]) == "true" }

// object is a member that is an object; nil for any other.
func (o members) object(name string) json.RawMessage {
	if v := o[name]; len(v) > 0 && v[0] == '{' {
		return v
	}
	return nil
}

// record reads one record: valid JSON of any kind.
func (rd *reader) record(line int, text []byte) error {
	var o members
	if text[0] != '{' || json.Unmarshal(text, &o) != nil {
		rd.broken(line, "not a JSON object")
		return nil //nolint:nilerr // reported, and the next line is read
	}
	if !utf8.Valid(text) {
		rd.broken(line, "not valid UTF-8")
		return nil
	}
	kind := o.str("type")
	_, plain := o["role"]
	_, inner := o["message"]
	switch {
	case plain && !inner:
		rd.is(Chat)
		return rd.emit(Entry{Kind: "message", Message: bytes.Clone(text), Line: line})
	case kind == "user" || kind == "assistant":
		return rd.claudeMessage(line, kind, o)
	case kind == "message" || kind == "custom_message" || kind == "branch_summary" || kind == "reset" || kind == "leaf":
		return rd.openclawEntry(line, kind, text, o)
	case kind == "session":
		rd.is(OpenClaw)
		rd.report.Version = 1
		if v, err := strconv.Atoi(string(o["version"])); err == nil {
			rd.report.Version = v
		}
		return rd.bookkeeping(line, kind, text, o)
	case kind == "":
		if list := o.list(); list != nil {
			rd.is(Chat)
			return rd.messages("line-"+strconv.Itoa(line), list, line)
		}
		kind = "unknown"
	default:
		rd.claude.see(o)
		rd.is(formatOf(o))
		if rd.report.Format == OpenClaw {
			return rd.bookkeeping(line, kind, text, o)
		}
	}
	rd.report.Skipped[kind]++
	return nil
}

// formatOf tells whose record it is that is no message.
func formatOf(o members) Format {
	for _, name := range [...]string{"uuid", "leafUuid", "sessionId"} {
		if _, ok := o[name]; ok {
			return ClaudeCode
		}
	}
	if _, ok := o["parentId"]; ok {
		return OpenClaw
	}
	return Unknown
}

func (rd *reader) openclawEntry(line int, kind string, text []byte, o members) error {
	rd.is(OpenClaw)
	e := Entry{Kind: kind, ID: o.str("id"), ParentID: o.str("parentId"), Line: line, Timestamp: timeOf(o["timestamp"]), Raw: bytes.Clone(text)}
	switch kind {
	case "message":
		if e.Message = o.object("message"); e.Message == nil {
			rd.broken(line, "message is not an object")
			return nil
		}
	case "custom_message":
		e.Message = o.build(`"role":"custom"`, e.Timestamp, "customType", "content", "display", "details")
	case "branch_summary":
		e.Message = o.build(`"role":"branchSummary"`, e.Timestamp, "summary", "fromId", "details")
	default:
		e.Record = e.Raw
	}
	return rd.emit(e)
}

// bookkeeping hands on a record of the host's tree that is no message. One without
// an id has no place in it.
func (rd *reader) bookkeeping(line int, kind string, text []byte, o members) error {
	e := Entry{
		Kind: kind, ID: o.str("id"), ParentID: o.str("parentId"), Line: line, Timestamp: timeOf(o["timestamp"]),
		Raw: bytes.Clone(text),
	}
	e.Record = e.Raw
	rd.report.Skipped[kind]++
	if e.ID == "" {
		return nil
	}
	return rd.fn(e)
}

// build makes a message of a record's own members, in the given order.
func (o members) build(role string, timestamp int64, names ...string) json.RawMessage {
	b := []byte("{" + role)
	for _, name := range names {
		if v, ok := o[name]; ok {
			b = append(append(append(b, `,"`...), name...), `":`...)
			b = append(b, v...)
		}
	}
	return fmt.Appendf(b, `,"timestamp":%d}`, timestamp)
}

// derive makes an id for an entry that has none, of its place in its session
// and its content.
func (rd *reader) derive(e *Entry) string {
	n := rd.derived[e.Session]
	rd.derived[e.Session]++
	content := e.Message
	if content == nil {
		content = e.Record
	}
	sum := message.Hash(content, false)
	return fmt.Sprintf("%d-%x", n, sum[:8])
}

// timeOf reads Unix milliseconds or a time of RFC 3339.
func timeOf(v json.RawMessage) int64 {
	var s string
	if json.Unmarshal(v, &s) == nil {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return 0
		}
		return t.UnixMilli()
	}
	var f float64
	if json.Unmarshal(v, &f) != nil || f < 0 || f > 1<<52 {
		return 0
	}
	return int64(f)
}
