// Append compares ingest over HTTP with the same append called once per
// transaction: one engined node under a load generator, and pgbench running
// SELECT append_events(…) with one item, in turns, on the same durable
// Postgres, in one run.
//
//	go build -o bin/engined ./cmd/engined && go run ./bench/append
//
// Both sides append equal messages with a new idempotency key each to sessions
// that exist already; at every level both have the same number of connections.
// Afterwards the log is checked: as many events as calls were acknowledged,
// and no gap in any session.
//
// The generator, the node and Postgres share the machine, so the numbers count
// against each other and not by themselves. On a machine that does other things
// too even the ratio does not: a scheduler gives pgbench's many backends a larger
// share than one node. The CPU columns are less moved by that.
package main
