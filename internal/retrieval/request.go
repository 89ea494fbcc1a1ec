package retrieval

import (
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// Match tells how much of a query a hit must hold.
type Match string

// The matches.
const (
	// MatchAll: every word and phrase, as it stands.
	MatchAll Match = "all"
	// MatchAny: some of the words, in any of their English forms.
	MatchAny Match = "any"
)

// Sort is the order of hits.
type Sort string

// The orders.
const (
	SortRelevance Sort = "relevance"
	// SortRecent is newest first, in the order of the log.
	SortRecent Sort = "recent"
)

// Request is a search. Tenant and Query are required.
type Request struct {
	Tenant string
	Query  string
	// Regex makes Query an expression in the syntax of RE2.
	Regex bool
	Match Match
	// SessionKey is the session to look at; Scopes names sessions by id and what
	// of them is looked at, and counts instead.
	SessionKey string
	Scopes     []store.SearchScope
	Kinds      []store.SearchKind
	Roles      []message.Role
	Tool       string
	Epoch      int64
	// Since is included, Until is not.
	Since, Until time.Time
	// ActiveOnly leaves out what a reset or rewind took off the path.
	ActiveOnly bool
	// Without leaves out messages that have one of these flags.
	Without message.Flags
	Sort    Sort
	// Limit is the most hits, 1 to 500.
	Limit int
	// After is the Next of an earlier answer to the same request.
	After string
}

// Hit is a message or summary that holds what was looked for.
type Hit struct {
	SessionKey string
	SID        uuid.UUID
	Seq        int64
	Kind       store.SearchKind
	Role       message.Role
	Flags      message.Flags
	Tool       string
	Epoch      int64
	At         time.Time
	// Active: on the session's present path.
	Active bool
	// Score is comparable within one search.
	Score float64
	// Tokens is the estimate of the whole message.
	Tokens  int
	Snippet search.Snippet
	// Text is the part of the message that holds most of what was looked for.
	Text string

	doc int64
	// spans are what was found in Text; the snippet is cut when the page is known.
	spans []search.Span
	// unread: all but place, rank and doc is still to be read.
	unread bool
}

func (h *Hit) rank() rank { return rank{h.Score, h.doc} }

// Answer is a page of hits.
type Answer struct {
	Hits []Hit
	// Next is the After of the next page, "" on the last one.
	Next string
	// Partial: the time was over before all was looked at; Next goes on.
	Partial bool
	// Current: when the search began, all of the log was in the index.
	Current bool
	// IndexedAt is when the index last moved.
	IndexedAt time.Time
	// IndexedTo is the newest indexed seq, where one session is looked at.
	IndexedTo int64
	// Encrypted: some of what was asked for is encrypted, and was not searched. An
	// encrypted session that is asked for by its key is, the newest 32 MiB of it.
	Encrypted bool
}
