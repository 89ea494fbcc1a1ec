// Package verify folds the logs of sessions and compares what is stored beside
// them: heads, offsets, recorded states, the facts of messages, keys, debts. It
// reads each session in one snapshot, a page at a time, and changes nothing.
//
// What only the log's writer knew is not compared: the path of a rewind or of a
// transcript's branches, and keys that a client chose.
package verify
