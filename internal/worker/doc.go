// Package worker runs the loops beside the turns: compaction of what sessions
// owe, the sweep that publishes debts again, and the relay that publishes what
// a node could not.
//
// Every loop has the same life: Start returns once it runs, Stop ends it and
// waits, twice is safe. Nothing here is needed for a turn; with NATS or all
// workers away, debts wait in Postgres.
package worker
