package events

// CauseAncestor is the cause of an epoch that an ancestor's erasure began.
const CauseAncestor Cause = "ancestor-erased"

// ForkedBody begins the log of a fork, which copies nothing: what it shows of
// its parent it reads there.
type ForkedBody struct {
	ParentSID        SID    `json:"parentSid"`
	ParentSessionKey string `json:"parentSessionKey,omitempty"`
	// AtSeq is the parent's head at the point of the fork.
	AtSeq int64 `json:"atSeq"`
	// Inherited is the number of places before the fork's own seq 1.
	Inherited int64 `json:"inherited"`
}

// SubagentPreparedBody readies a child session; it is in the child's log, so
// that a preparation that is rolled back leaves nothing.
type SubagentPreparedBody struct {
	PreparationID    string `json:"preparationId"`
	ParentSID        SID    `json:"parentSid"`
	ParentSessionKey string `json:"parentSessionKey,omitempty"`
	ContextMode      string `json:"contextMode"`
	// ParentSeq is the parent's head then.
	ParentSeq int64 `json:"parentSeq"`
	TTLMs     int64 `json:"ttlMs,omitempty"`
}

// SubagentEndedBody says why a child ended; it is in the child's log. The child
// may go on, and may end again for another reason.
type SubagentEndedBody struct {
	Reason string `json:"reason"`
}

// AncestorErasedBody steps the epoch of a session that inherited from one that
// was erased.
type AncestorErasedBody struct {
	SID SID `json:"sid"`
	// Through is the last place that is gone.
	Through int64 `json:"through"`
}
