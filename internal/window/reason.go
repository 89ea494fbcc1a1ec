package window

// Reason tells why a message is in the window or not.
type Reason uint8

// Why something is shown.
const (
	none Reason = iota
	// IsSummary: a live summary.
	IsSummary
	// InTail: among the newest messages that fit.
	InTail
	// NewestUser: the newest user message, shown whatever the budget.
	NewestUser
	// OpenCall: its tool call waits for a result.
	OpenCall
	// Unread: holds a result that the model has not read yet.
	Unread
	// Newest: the newest message of a session without a user message.
	Newest
	// TurnStart: the user message of the turn that the tail starts in, where the
	// provider wants a window to begin with the user.
	TurnStart
	// PrunedTrim: an old tool result whose middle is left out.
	PrunedTrim
	// PrunedClear: an old tool result of which only the place is shown.
	PrunedClear
	// SummaryShort: a live summary of which a few lines are shown.
	SummaryShort
	// Rewritten: a message of which a shorter form stands in the window.
	Rewritten
	// Opens: the engine's own notice, where the provider wants a window to begin
	// with the user and none is there to begin it.
	Opens
)

// Why something is left out.
const (
	// Trimmed: older than what fits the budget.
	Trimmed Reason = iota + 32
	// HiddenMessage: excluded by the host, empty, of a role that no model knows, or
	// with a tool call that has no id.
	HiddenMessage
	// OrphanResult: answers a call that is not on the path or is hidden, or
	// calls of several messages at once.
	OrphanResult
	// Unanswered: a tool call that the conversation went on without.
	Unanswered
	// Superseded: a newer result answers the same call.
	Superseded
	// HeartbeatDone: a heartbeat that led to nothing, and a user spoke since.
	HeartbeatDone
	// Held: logged after a tool call that is still open; shown after its result.
	Held
	// Leading: stands before the first user message, where the provider wants
	// none.
	Leading
	// SummaryNoRoom: the summaries together are larger than their share.
	SummaryNoRoom
)

var reasonTexts = map[Reason]string{
	IsSummary:     "summary of older messages",
	InTail:        "among the newest messages that fit",
	NewestUser:    "newest user message, always shown",
	OpenCall:      "open tool call, always shown",
	Unread:        "tool result that the model has not read yet, always shown",
	Newest:        "newest message, always shown",
	TurnStart:     "user message of the first turn shown",
	PrunedTrim:    "old tool result, pruned to its beginning and end",
	PrunedClear:   "old tool result, pruned whole",
	SummaryShort:  "summary of older messages, shortened for want of room",
	Rewritten:     "old tool result, rewritten to a shorter form",
	Opens:         "no user message to begin with",
	Trimmed:       "older than what fits the budget",
	HiddenMessage: "excluded by the host, or nothing that a model takes",
	OrphanResult:  "tool result without its call",
	Unanswered:    "tool call that was never answered",
	Superseded:    "a newer result answers the same call",
	HeartbeatDone: "heartbeat without work, and a user spoke since",
	Held:          "logged while a tool call is open; follows its result",
	Leading:       "before the first user message",
	SummaryNoRoom: "summaries are larger than their share of the budget",
}

// String is the reason in words.
func (r Reason) String() string {
	if s, ok := reasonTexts[r]; ok {
		return s
	}
	return "unknown"
}
