// Package transcript reads the files in which agent hosts keep conversations,
// for import: OpenClaw and pi (versions 1 to 4), Claude Code, and chats as
// plain JSON (OpenAI or Anthropic messages).
//
// It takes each message's bytes as they stand in the file and interprets none
// of them. Files from the field are torn, padded and glued together by
// crashes: what can't be read is reported and stepped over, and the records
// behind it are still read.
package transcript

import (
	"encoding/json"
	"errors"
)

// ErrUnknownFormat: the file holds nothing that looks like a transcript.
var ErrUnknownFormat = errors.New("nothing in it looks like a transcript")

// MaxLine is the longest line that is read, in bytes; longer ones are reported
// as broken.
const MaxLine = 64 << 20

// Entry is one record of a transcript that matters to a session.
type Entry struct {
	// Session tells several conversations of one file apart: "" for the file's
	// own, else a suffix for the session key: a sub-agent's chain, another
	// session id, a run of a file of many runs. It is the same at every reading.
	Session string
	// ID is the entry's own id; where the format has none, one derived from its
	// place and content, the same at every reading of the file and of a longer
	// version of it.
	ID string
	// ParentID is the entry before it in its tree; "" for none. Where the format
	// has no ids it is the entry before it in the session.
	ParentID string
	// Message is the message, byte for byte as in the file. Formats that keep a
	// message's members in the record itself (custom_message, branch_summary)
	// get a message made of those members' bytes. It is nil for records that are
	// no message: those that change what the session shows ("reset" and "leaf")
	// and what the host keeps beside it.
	Message json.RawMessage
	// Record is the whole record of a kind that has no Message.
	Record json.RawMessage
	// Raw is the whole record of an entry in a host's own tree, as it stands in
	// the file; only OpenClaw's format has one. Such files hand on every record
	// with an id, not only those that are messages.
	Raw json.RawMessage
	// Kind is the record's type in the file's own words; "message" where the
	// file holds plain messages.
	Kind string
	// Sidechain is set for messages of a sub-agent in its parent's file.
	Sidechain bool
	// Line is where the record stands, from 1; the number of the message in a
	// file that is one JSON document.
	Line int
	// Timestamp is the record's own, in Unix milliseconds; 0 for none.
	Timestamp int64
}

// Format is a kind of transcript file.
type Format string

// The formats. A file's format is that of its first record that tells.
const (
	Unknown    Format = ""
	OpenClaw   Format = "openclaw"
	ClaudeCode Format = "claude-code"
	Chat       Format = "chat"
)

// Broken is a place in a file that could not be read.
type Broken struct {
	Line   int
	Reason string
}

// Report sums up a reading.
type Report struct {
	Format Format
	// Version is the version in an OpenClaw header; 1 where it has none.
	Version int
	// Messages were handed on. Skipped counts all other records by kind, those
	// handed on without a Message too.
	Messages int
	Skipped  map[string]int
	Broken   []Broken
}
