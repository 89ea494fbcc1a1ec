// Package compact plans and runs compactions: which old messages of a session
// are replaced in its windows by which summaries.
//
// NewPlan is a pure function of facts; it reads no body and knows no clock.
// Run executes a plan: it reads the sources chunk by chunk, asks a summarizer,
// keeps every finished text as a draft and hands back what a commit needs. It
// commits nothing itself, so a failure changes nothing.
package compact
