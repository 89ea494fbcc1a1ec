package contextengine

import "encoding/json"

// TranscriptParams is a page of a host's transcript, in the host's own order.
// It is no call of the contract: hosts with a transcript of their own sync it
// to a service, which keeps the bookmark.
type TranscriptParams struct {
	Session
	Expectations
	// Cursor is the host's bookmark behind the page; the service keeps and never
	// reads it. Without one the kept bookmark stays.
	Cursor *string `json:"cursor,omitempty"`
	// Entries are the raw entries of the transcript: messages, resets, leaf
	// moves, compactions and all others.
	Entries []json.RawMessage `json:"entries"`
	// LifecycleRevision changes with every reset of the host's session.
	LifecycleRevision string `json:"lifecycleRevision,omitempty"`
}

// TranscriptResult answers a page. Stored and Duplicates add up to the number
// of entries.
type TranscriptResult struct {
	Stored     int `json:"stored"`
	Duplicates int `json:"duplicates"`
	// Messages is how many of the stored entries are messages.
	Messages int     `json:"messages"`
	Cursor   *string `json:"cursor"`
	Head     int64   `json:"head"`
	Epoch    int64   `json:"epoch"`
}

// TranscriptCursor is where a host goes on with its transcript.
type TranscriptCursor struct {
	// Cursor is nil before the first page.
	Cursor            *string `json:"cursor"`
	LifecycleRevision string  `json:"lifecycleRevision,omitempty"`
}
