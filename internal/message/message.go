package message

// Dialect tells whose message format a message is in.
type Dialect uint8

// The known dialects. A message that would read the same in all of them
// (`{"role":"user","content":"hi"}`) is Neutral.
const (
	Neutral Dialect = iota
	OpenClaw
	OpenAI
	Anthropic
)

// Role is who speaks, the same word in every dialect.
type Role uint8

// The roles. Result is a message that answers tool calls: OpenClaw's
// "toolResult", OpenAI's "tool", an Anthropic user message that holds
// tool_result blocks. Note is text that the model sees as coming from the user
// side though no user wrote it: custom, bashExecution, branchSummary,
// compactionSummary, and (then Hidden) whatever role is unknown.
const (
	RoleUnknown Role = iota
	User
	Assistant
	Result
	System
	Note
)

// Flags are facts of a message that decide whether and how it is shown.
type Flags uint32

// The flags. They are stored; never renumber them.
const (
	// Hidden never enters a window: excludeFromContext, an assistant or user
	// message without content, an aborted turn of reasoning only, a role that no
	// dialect knows, a tool call without an id.
	Hidden Flags = 1 << iota
	// Heartbeat belongs to a heartbeat exchange, as the host said or as the
	// message itself tells (provenance heartbeat, a bare HEARTBEAT_OK answer).
	Heartbeat
	// HasImage holds at least one image.
	HasImage
	// IsError is a tool result that reports a failure.
	IsError
	// Aborted is an assistant message that was aborted or failed.
	Aborted
	// UserText is set on a Result that also holds text or an image of the user
	// (Anthropic). Blanks are no text.
	UserText
	// Cuttable is a tool result or a note whose text CutResult can shorten.
	Cuttable
)

// Has reports whether all of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// Call is one tool call of an assistant message.
type Call struct {
	ID   string
	Name string
	// Args is the arguments' JSON text as sent.
	Args string
}

// BlockKind is the kind of one piece of content.
type BlockKind uint8

// The kinds of content.
const (
	Text BlockKind = iota
	Thinking
	ToolCall
	ToolResult
	Image
)

// Block is one piece of content, in order.
type Block struct {
	Kind BlockKind
	// Text is what the model reads: text, thinking or the result's text. Lone
	// surrogates are replaced here (and only here) by U+FFFD.
	Text string
	// Call is set for ToolCall.
	Call Call
	// ResultOf is the id of the call that a ToolResult answers.
	ResultOf string
	// ImageBytes is the size of a decoded image; its cost is by size class.
	ImageBytes int
}

// Message is a read message.
type Message struct {
	Dialect Dialect
	Role    Role
	Flags   Flags
	Blocks  []Block
	// ToolName is the tool that a Result came from, where the message says so.
	ToolName string
	// Name is the participant who speaks, where a message of a user or an
	// assistant names one.
	Name string
	// Timestamp is the host's own, in Unix milliseconds; 0 when absent. It
	// orders nothing.
	Timestamp int64
	// ResponseID and EntryKey are identities the host put into the message
	// itself (assistant responseId, user idempotencyKey).
	ResponseID string
	EntryKey   string
	// PromptTokens is the prompt size that the message's own usage reports; 0
	// when absent.
	PromptTokens int
	// Model is the model that wrote an assistant message, where it says so.
	Model string
}

// Facts are what the log keeps beside a body, so that windows are planned
// without reading bodies. They can be derived again from the body at any time.
type Facts struct {
	Dialect Dialect
	Role    Role
	Flags   Flags
	// Tokens is the uncalibrated estimate of what a model is billed for the
	// message shown whole; 0 for Hidden ones.
	Tokens int
	// Calls are the ids of the tool calls it makes, in order.
	Calls []string
	// Results are the ids of the calls it answers, in order.
	Results []string
}

// ReaderVersion is stored with every event; a change of what Read or the
// token estimate say raises it, and a rebuild derives the facts again.
const ReaderVersion = 2
