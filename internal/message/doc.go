// Package message reads messages of the dialects that hosts speak: OpenClaw/pi,
// OpenAI chat and Anthropic. It tells role, visible text, tool calls, results
// and images, so that the rest of the system can reason about a message
// without knowing its dialect.
//
// It never rewrites a message, with one stated exception: CutResult shortens a
// tool result that is too large for a window. The package is pure: no clock,
// no driver, no global state.
package message
