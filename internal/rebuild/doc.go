// Package rebuild derives anew, from the logs of sessions, what is stored beside
// them: facts and offsets of events, recorded states, sessions' rows, keys,
// debts. What package verify finds wrong and a log still tells, it repairs; what
// only the lost bytes told, it names.
//
// A session is first folded in a snapshot, without a lock. Only where something
// differs it is folded again under the session's lock and written in the same
// transaction, so nodes may serve meanwhile and a second run changes nothing.
// What agrees with the log is left as it is: a recorded state also holds what its
// events do not repeat.
package rebuild
