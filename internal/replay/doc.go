// Package replay runs a recorded session again under another policy: the same
// messages in the same order, a window before every reply, a compaction
// wherever one is owed. What the policies then cost and keep stands side by
// side, measured on the session itself.
package replay
