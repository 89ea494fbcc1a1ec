// Package chaos keeps a cluster of engined under fire: several nodes and
// workers as processes, Postgres and NATS on loopback, many clients at work,
// and, from a seeded plan, one fault or two a cycle. Between the cycles it
// holds logs, histories, streams and the feed against what the clients were
// told, and in the end everything against everything.
//
//	go test ./test/chaos                        # a few cycles
//	make chaos ARGS='-cycles 200 -seed 7'       # many; a seed replays its plan
//
// docs/chaos.md has the table of a long run.
package chaos
