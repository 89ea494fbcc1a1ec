package hostlog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/internal/message"
)

// Kind is what an entry does to what the host shows.
type Kind uint8

// The kinds of entries.
const (
	// Record is kept and shows nothing: model changes, labels, bookkeeping, the
	// host's own compactions.
	Record Kind = iota
	// Header begins a transcript. It is no part of the tree.
	Header
	// Message is a message.
	Message
	// Leaf moves the transcript's leaf to another entry.
	Leaf
	// Reset hides what came before it.
	Reset
)

// maxID bounds the ids that are kept as they are, in bytes.
const maxID = 400

// Entry is one entry of a host's transcript.
type Entry struct {
	Kind Kind
	// Type is the entry's kind in the host's own words.
	Type string
	// ID is empty for one that has none; see Derive.
	ID string
	// Parent is the entry that this one follows. Rooted tells that the host said
	// so of none; without either the entry follows the one before it.
	Parent string
	Rooted bool
	// Message is a message's bytes, verbatim.
	Message json.RawMessage
	// Target is where a Leaf moves the leaf, empty for before everything.
	Target string
	// FirstKept is the entry from which on a Reset keeps, empty for nothing.
	FirstKept string
	// Reason is a Reset's.
	Reason string
	// Side is set for an entry that does not move the leaf.
	Side bool
	// Raw is the whole entry as it came.
	Raw json.RawMessage
}

var (
	errNoObject  = errors.New("must be a JSON object")
	errNoType    = errors.New("type: is required")
	errNoMessage = errors.New("message: must be a JSON object")
)

// Decode reads an entry: valid JSON, as the host keeps it. It refuses what has
// no type, and a message that is none. An object with a role and no type is a
// message by itself, as old transcripts have them.
func Decode(raw json.RawMessage) (Entry, error) {
	raw = bytes.TrimSpace(raw)
	var o map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' {
		return Entry{}, errNoObject
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Entry{}, fmt.Errorf("invalid JSON: %w", err)
	}
	e := Entry{Type: text(o["type"]), Raw: raw, ID: id(o["id"])}
	e.Side = text(o["appendMode"]) == "side"
	switch p, has := o["parentId"]; {
	case !has:
	case string(p) == "null":
		e.Rooted = true
	default:
		e.Parent = id(p)
	}
	switch e.Type {
	case "":
		if _, has := o["role"]; !has {
			return Entry{}, errNoType
		}
		e.Kind, e.Type, e.Message = Message, "message", raw
	case "session":
		e.Kind = Header
	case "message":
		e.Kind = Message
		if e.Message = o["message"]; len(e.Message) == 0 || e.Message[0] != '{' {
			return Entry{}, errNoMessage
		}
	case "custom_message":
		e.Kind = Message
		e.Message = build(o, `"role":"custom"`, "customType", "content", "display", "details")
	case "branch_summary":
		e.Kind = Message
		e.Message = build(o, `"role":"branchSummary"`, "summary", "fromId", "details")
	case "leaf":
		// Without a target it says nothing; a null one is before everything.
		if to, has := o["targetId"]; has {
			e.Kind, e.Target = Leaf, id(to)
		}
	case "reset":
		e.Kind, e.FirstKept, e.Reason = Reset, id(o["firstKeptEntryId"]), text(o["reason"])
	}
	return e, nil
}

func text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// id reads an id: a string, or a number by its text. One that can't be a key,
// or is longer than one should be, stands for itself by its hash.
func id(v json.RawMessage) string {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(v, &s) == nil:
	case json.Unmarshal(v, &n) == nil:
		s = n.String()
	}
	// Halves of surrogate pairs all read as U+FFFD.
	if len(s) > maxID || strings.IndexByte(s, 0) >= 0 || strings.ContainsRune(s, utf8.RuneError) {
		sum := message.Hash(v, false)
		return "sha256-" + hex.EncodeToString(sum[:])
	}
	return s
}

// build makes a message of members that the entry holds itself, byte for byte.
func build(o map[string]json.RawMessage, role string, names ...string) json.RawMessage {
	b := []byte("{" + role)
	for _, name := range names {
		if v, ok := o[name]; ok {
			b = append(append(append(b, `,"`...), name...), `":`...)
			b = append(b, v...)
		}
	}
	return fmt.Appendf(b, `,"timestamp":%d}`, millis(o["timestamp"]))
}

// millis reads Unix milliseconds or a time of RFC 3339; 0 for neither.
func millis(v json.RawMessage) int64 {
	if t, err := time.Parse(time.RFC3339Nano, text(v)); err == nil {
		return t.UnixMilli()
	}
	var f float64
	if json.Unmarshal(v, &f) != nil || f < 0 || f > 1<<52 {
		return 0
	}
	return int64(f)
}

// Hash is what equality of two entries means: the message's for a message, else
// the whole entry's.
func (e *Entry) Hash() [32]byte {
	if e.Kind == Message {
		return message.Hash(e.Message, false)
	}
	return message.Hash(e.Raw, false)
}

// Derive is the id of an entry without one: its place among those of its lane,
// from 0, and its content. It is the same at every reading.
func (e *Entry) Derive(place int) string {
	sum := e.Hash()
	return fmt.Sprintf("%d-%s", place, hex.EncodeToString(sum[:8]))
}
