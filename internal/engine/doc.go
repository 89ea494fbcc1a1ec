// Package engine holds the built-in context engines, the registry that knows
// them and others, and the guard that keeps a broken engine from costing a turn.
//
// Lossless stores every message as an event, projects the log into windows and
// owns compaction: summaries are events too, form a tree over the log and
// replace what they cover in the window, never in the log. Legacy stores the
// same way, passes the host's own messages through and leaves compaction to
// the host's runtime.
//
// An engine keeps nothing that Postgres does not hold, except a cache of what
// cannot change.
package engine
