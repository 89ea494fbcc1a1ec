package contextengine

import "encoding/json"

// Session names the conversation a call is about.
type Session struct {
	// Tenant is the isolation border. Transports set it from the caller's key,
	// never from a request body.
	Tenant string `json:"-"`
	// SessionKey is the stable routing key, 1 to 512 bytes of UTF-8, compared
	// byte for byte.
	SessionKey string `json:"sessionKey,omitempty"`
	// SessionID is the host's current transcript identity under that key. It
	// may change while the conversation goes on.
	SessionID string `json:"sessionId,omitempty"`
	// GatewayID tells which gateway speaks, where several share a session.
	GatewayID string `json:"gatewayId,omitempty"`
	// LeaseToken is the token of the session's lease, where the caller holds it.
	// A write that carries one is refused once the lease is another's or over;
	// a write without one never is.
	LeaseToken string `json:"leaseToken,omitempty"`
}

// Expectations make a write conditional. The zero value demands nothing.
type Expectations struct {
	// ExpectedHead is the highest seq that a host wrote, as the caller knows
	// it. Another value answers ErrStaleHead.
	ExpectedHead *int64 `json:"expectedHead,omitempty"`
	// ExpectedEpoch is the epoch as the caller knows it.
	ExpectedEpoch *int64 `json:"expectedEpoch,omitempty"`
}

// IngestParams is one message to store.
type IngestParams struct {
	Session
	Expectations
	Message     json.RawMessage `json:"message"`
	IsHeartbeat bool            `json:"isHeartbeat,omitempty"`
	// IdempotencyKey makes a retry harmless: the same key with the same
	// message answers the first seq; with another message it is a conflict.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// IngestResult tells where the message is. Ingested is false for a duplicate.
type IngestResult struct {
	Ingested  bool  `json:"ingested"`
	Seq       int64 `json:"seq"`
	Head      int64 `json:"head"`
	Epoch     int64 `json:"epoch"`
	Duplicate bool  `json:"duplicate"`
}

// IngestBatchParams are messages to store together, in order.
type IngestBatchParams struct {
	Session
	Expectations
	Messages    []json.RawMessage `json:"messages"`
	IsHeartbeat bool              `json:"isHeartbeat,omitempty"`
	// IdempotencyKeys, if any, has one key per message; "" is no key.
	IdempotencyKeys []string `json:"idempotencyKeys,omitempty"`
}

// IngestBatchResult has one seq per message, duplicates included.
// IngestedCount counts only the messages that were new.
type IngestBatchResult struct {
	IngestedCount int     `json:"ingestedCount"`
	Seqs          []int64 `json:"seqs"`
	Head          int64   `json:"head"`
	Epoch         int64   `json:"epoch"`
}

// BootstrapParams hands over the host's whole history of a session. The known
// prefix is skipped.
type BootstrapParams struct {
	Session
	Expectations
	SessionTarget   *SessionTarget    `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext   `json:"runtimeContext,omitempty"`
	Messages        []json.RawMessage `json:"messages,omitempty"`
}

// BootstrapResult says what the engine took over.
type BootstrapResult struct {
	Bootstrapped     bool   `json:"bootstrapped"`
	ImportedMessages int    `json:"importedMessages"`
	Reason           string `json:"reason,omitempty"`
	Head             int64  `json:"head"`
	Epoch            int64  `json:"epoch"`
}

// CommitTurnParams is one accepted turn: the admitted user message, all that
// followed, the terminal message.
type CommitTurnParams struct {
	Session
	Expectations
	// AdvancementKey names the turn; the same key with the same messages is a
	// duplicate.
	AdvancementKey  string            `json:"advancementKey"`
	Messages        []json.RawMessage `json:"messages"`
	IsHeartbeat     bool              `json:"isHeartbeat,omitempty"`
	SessionTarget   *SessionTarget    `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext   `json:"runtimeContext,omitempty"`
	// Admission and Terminal are the host's anchors of the first and the last
	// message, kept as sent: a TurnAdmission and an EntryAnchor.
	Admission json.RawMessage `json:"admission,omitempty"`
	Terminal  json.RawMessage `json:"terminal,omitempty"`
	// TokenBudget and Usage may also arrive in RuntimeContext.
	TokenBudget *int   `json:"tokenBudget,omitempty"`
	Usage       *Usage `json:"usage,omitempty"`
}

// TurnStatus tells whether a turn was stored now or before.
type TurnStatus string

// The two statuses that a host accepts.
const (
	TurnCommitted TurnStatus = "committed"
	TurnDuplicate TurnStatus = "duplicate"
)

// CommitTurnResult answers a turn.
type CommitTurnResult struct {
	Status     TurnStatus       `json:"status"`
	Head       int64            `json:"head"`
	Epoch      int64            `json:"epoch"`
	Compaction CompactionStatus `json:"compaction"`
}

// AfterTurnParams tells that a turn ended. Messages is the host's message
// list; the turn added Messages[PrePromptMessageCount:].
type AfterTurnParams struct {
	Session
	Expectations
	SessionTarget   *SessionTarget    `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings  `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext   `json:"runtimeContext,omitempty"`
	Messages        []json.RawMessage `json:"messages"`
	// PrePromptMessageCount is the fence: what stands before it was there when
	// the turn began. From 0 to len(Messages).
	PrePromptMessageCount int  `json:"prePromptMessageCount"`
	IsHeartbeat           bool `json:"isHeartbeat,omitempty"`
	// AutoCompactionSummary is the text of a compaction that the host itself
	// made during the turn.
	AutoCompactionSummary string `json:"autoCompactionSummary,omitempty"`
	TokenBudget           *int   `json:"tokenBudget,omitempty"`
	Usage                 *Usage `json:"usage,omitempty"`
}

// CompactionStatus tells what a turn set in motion.
type CompactionStatus string

// What a session owes after a turn.
const (
	CompactionNone      CompactionStatus = "none"
	CompactionScheduled CompactionStatus = "scheduled"
	CompactionRunning   CompactionStatus = "running"
)

// AfterTurnResult answers AfterTurn.
type AfterTurnResult struct {
	IngestedCount int              `json:"ingestedCount"`
	Head          int64            `json:"head"`
	Epoch         int64            `json:"epoch"`
	Compaction    CompactionStatus `json:"compaction"`
}

// Usage is what a provider reported for one model call, in tokens. The prompt
// had Input + CacheRead + CacheWrite tokens.
type Usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cacheRead"`
	CacheWrite int `json:"cacheWrite"`
}

// PromptTokens is the size of the prompt that was billed.
func (u Usage) PromptTokens() int { return u.Input + u.CacheRead + u.CacheWrite }

// AssembleParams asks for a window.
type AssembleParams struct {
	Session
	SessionTarget   *SessionTarget   `json:"sessionTarget,omitempty"`
	RuntimeSettings *RuntimeSettings `json:"runtimeSettings,omitempty"`
	RuntimeContext  *RuntimeContext  `json:"runtimeContext,omitempty"`
	// TokenBudget is a positive number of tokens. Absent: the newest budget
	// that a turn reported, else the configured default.
	TokenBudget *int `json:"tokenBudget,omitempty"`
	// Messages and Prompt are hints. They are never stored. Messages is what
	// the host would show by itself, before the turn's own messages.
	Messages []json.RawMessage `json:"messages,omitempty"`
	Prompt   string            `json:"prompt,omitempty"`
	Model    string            `json:"model,omitempty"`
	// AvailableTools are the names of the tools that the model has.
	AvailableTools []string `json:"availableTools,omitempty"`
	// CitationsMode is the host's setting for citations in recalled memory.
	CitationsMode string `json:"citationsMode,omitempty"`
	// AsOfSeq asks for the window as it was when the head was this seq.
	AsOfSeq *int64 `json:"asOfSeq,omitempty"`
	// Explain asks for one line of reason per item and per message left out.
	Explain bool `json:"explain,omitempty"`
}

// AssembleResult is a window.
type AssembleResult struct {
	// Messages are in order and never nil; an empty window is an empty array.
	Messages        []json.RawMessage `json:"messages"`
	EstimatedTokens int               `json:"estimatedTokens"`
	// TokenBudget is the budget that counted; 0 where the engine does not tell.
	TokenBudget int `json:"tokenBudget,omitempty"`
	// SystemPromptAddition stands after the cached part of the system prompt.
	SystemPromptAddition string `json:"systemPromptAddition,omitempty"`
	// PromptAuthority is AuthorityAssembled where it is empty.
	PromptAuthority   string             `json:"promptAuthority,omitempty"`
	ContextProjection *ContextProjection `json:"contextProjection,omitempty"`
	Head              int64              `json:"head"`
	Epoch             int64              `json:"epoch"`
	OverBudget        *OverBudget        `json:"overBudget,omitempty"`
	// LeftOut counts the messages of the active path that are neither shown
	// nor covered by a summary that is shown.
	LeftOut     int           `json:"leftOut,omitempty"`
	Explanation []Explanation `json:"explanation,omitempty"`
}

// Who answers for the size of the prompt.
const (
	// AuthorityAssembled: the window's own estimate counts.
	AuthorityAssembled = "assembled"
	// AuthorityMayOverflow keeps the host's check before the prompt, over the
	// larger of the window's and the unwindowed history's estimate.
	AuthorityMayOverflow = "preassembly_may_overflow"
)

// How a host with threads of its own uses a window.
const (
	// ProjectionPerTurn: the window is sent with every model call.
	ProjectionPerTurn = "per_turn"
	// ProjectionThread: the window is put into the thread once an epoch.
	ProjectionThread = "thread_bootstrap"
)

// ContextProjection identifies the prefix of a window. While Epoch and
// Fingerprint are both equal, an earlier window is a prefix of a later one.
type ContextProjection struct {
	Mode        string `json:"mode"`
	Epoch       string `json:"epoch"`
	Fingerprint string `json:"fingerprint"`
}

// OverBudget says that the smallest valid window does not fit.
type OverBudget struct {
	Budget int              `json:"budget"`
	Needed int              `json:"needed"`
	Items  []OverBudgetItem `json:"items"`
}

// OverBudgetItem is one message that had to be shown.
type OverBudgetItem struct {
	Seq int64 `json:"seq"`
	// SessionKey is the ancestor's whose event it is; absent for the session's own.
	SessionKey string `json:"sessionKey,omitempty"`
	Tokens     int    `json:"tokens"`
}

// Explanation tells why a message is in the window or not. What is shown comes
// first, in the window's order. Kind is message, summary, passage (several that
// follow each other stand in one message) or notice, which no event is behind.
type Explanation struct {
	Seq int64 `json:"seq"`
	// SessionKey is the ancestor's whose event it is; absent for the session's own.
	SessionKey string `json:"sessionKey,omitempty"`

	Kind   string `json:"kind"`
	Tokens int    `json:"tokens"`
	Shown  bool   `json:"shown"`
	Reason string `json:"reason"`
}
