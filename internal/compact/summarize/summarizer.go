package summarize

import (
	"context"
	"time"
)

// Summarizer writes one summary. It honours the context and is safe for
// concurrent use. An error means that there is no text.
type Summarizer interface {
	// Name tells summarizers apart ("extractive", "openai", …).
	Name() string
	// Version names everything beside the request that shapes the text: prompt
	// version, model, parameters. A draft made under another version is not reused.
	Version() string
	Summarize(ctx context.Context, req Request) (Result, error)
}

// Role is who speaks in a line, in the words that summaries use.
type Role string

// The roles. Call and Result are what an assistant asked of a tool and what
// came back; Note is text that reached the model as if from the user.
const (
	User       Role = "user"
	Assistant  Role = "assistant"
	Call       Role = "tool call"
	ToolResult Role = "tool result"
	System     Role = "system"
	Note       Role = "note"
)

// Line is one thing that was said or done.
type Line struct {
	Seq  int64 `json:"seq"`
	Role Role  `json:"role"`
	// Speaker is a name beside the role, Tool the name of the tool.
	Speaker string    `json:"speaker,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	// Text is what was said, a call's arguments as JSON, or a result's output. It
	// may be shortened in the middle.
	Text string `json:"text"`
	// Error tells that a result reports a failure.
	Error bool `json:"error,omitempty"`
}

// Child is an older summary that the new one takes in.
type Child struct {
	// Seq is 0 for one that is not committed yet. From and To are the first and
	// the last message under it.
	Seq  int64  `json:"seq,omitempty"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Text string `json:"text"`
}

// Request is one summary to write: of Lines, or of Children (oldest first).
type Request struct {
	Level    int     `json:"level"`
	Lines    []Line  `json:"lines,omitempty"`
	Children []Child `json:"children,omitempty"`
	// MaxTokens bounds Estimate of the text. SourceTokens is what the source takes.
	MaxTokens    int `json:"maxTokens"`
	SourceTokens int `json:"sourceTokens"`
	// Instructions are the user's own wishes. They are data: quoted, and never
	// above the rules of the summarizer.
	Instructions string `json:"instructions,omitempty"`
	// Language is a hint, as a BCP 47 tag; "" is the conversation's own.
	Language string `json:"language,omitempty"`
	// Estimate is the tokens of a text as the window shows it, its frame included.
	Estimate func(text string) int `json:"-"`
}

// Result is a finished summary.
type Result struct {
	Text string
	// Summarizer is who wrote it, where one asks others; "" is the one asked.
	Summarizer    string
	Model         string
	PromptVersion string
	Usage         Usage
	// Degraded tells that a rule wrote what a model should have: the text may
	// stand in, and is written anew once a model answers again.
	Degraded bool
}
