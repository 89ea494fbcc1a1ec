package contextengine

// EntryAnchor is a place in the host's transcript.
type EntryAnchor struct {
	AgentID    string `json:"agentId"`
	SessionID  string `json:"sessionId"`
	SessionKey string `json:"sessionKey"`
	StorePath  string `json:"storePath"`
	// Generation changes when the transcript is rewritten or replaced.
	Generation string `json:"generation"`
	EntryID    string `json:"entryId"`
	// RawSeq is the entry's row in the transcript.
	RawSeq int64 `json:"rawSeq"`
	// EffectiveParentID is nil for the first entry.
	EffectiveParentID *string `json:"effectiveParentId"`
	// ActiveMessagePosition counts the messages of the active branch from 0.
	ActiveMessagePosition int64  `json:"activeMessagePosition"`
	IdempotencyKey        string `json:"idempotencyKey,omitempty"`
}

// TurnAdmission is the anchor of the user message that began a turn. Its
// LogicalTurnID is the turn's advancement key.
type TurnAdmission struct {
	EntryAnchor
	LogicalTurnID string `json:"logicalTurnId"`
	Role          string `json:"role"`
}
