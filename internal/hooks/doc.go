// Package hooks tells others of compactions: on the bus, in ids, and by a webhook
// that is waited for before a compaction, so that a memory system can write notes
// first. No hook ever stops a compaction.
package hooks
