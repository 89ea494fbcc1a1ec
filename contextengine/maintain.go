package contextengine

import (
	"context"
	"encoding/json"
)

// When a host calls Maintain.
const (
	MaintainAfterBootstrap  = "bootstrap"
	MaintainAfterTurn       = "turn"
	MaintainAfterCompaction = "compaction"
)

// MaintainParams asks for housekeeping.
type MaintainParams struct {
	Session
	SessionTarget   *SessionTarget   `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext  `json:"runtimeContext,omitempty"`
	// Reason is one of the MaintainAfter words.
	Reason string `json:"reason,omitempty"`
	// Rewriter changes the host's transcript. A host that has none, as every
	// host behind a network, leaves it nil.
	Rewriter TranscriptRewriter `json:"-"`
}

// MaintainResult is the host's TranscriptRewriteResult.
type MaintainResult struct {
	Changed bool `json:"changed"`
	// BytesFreed is by how much the transcript's JSON became smaller, never
	// below zero.
	BytesFreed       int64  `json:"bytesFreed"`
	RewrittenEntries int    `json:"rewrittenEntries"`
	Reason           string `json:"reason,omitempty"`
}

// TranscriptRewriter replaces messages on the active branch of a transcript.
type TranscriptRewriter interface {
	RewriteTranscript(ctx context.Context, r TranscriptRewrite) (MaintainResult, error)
}

// TranscriptRewrite names the entries to replace. The entries after the first
// of them get new ids; those in AllowedSuffix are the only ones that may.
type TranscriptRewrite struct {
	Replacements []Replacement `json:"replacements"`
	// AllowedSuffix absent allows any.
	AllowedSuffix []string `json:"allowedRewriteSuffixEntryIds,omitempty"`
}

// Replacement is the new message of one entry.
type Replacement struct {
	EntryID string          `json:"entryId"`
	Message json.RawMessage `json:"message"`
}

// Reasons of rewrites that changed nothing, in the host's words.
const (
	RewriteNothingAsked  = "no replacements requested"
	RewriteEmptySession  = "empty session"
	RewriteNothingFound  = "no changed matching message entries"
	RewriteInvalidTarget = "invalid first rewrite target"
)
