// Package store keeps the log in Postgres and is the only package that talks
// to it.
//
// Guarantees:
//   - an acknowledged append is durable, exactly once, in order: within a
//     session seq is 1, 2, 3 … without gaps;
//   - every writer of a session's events takes the session's advisory lock
//     before it takes a transaction id, so the order of (xid, position) is the
//     order of seq within a session, and the feed never shows seq 2 before seq 1;
//   - an epoch step is a compare-and-swap: work planned in epoch n commits in
//     epoch n or not at all.
//
// Bodies are bytes. SQL never parses them.
package store
