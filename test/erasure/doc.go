// Package erasure holds what is erased to the whole service: a node, a worker,
// their Postgres and their NATS. After an erasure every table is dumped and
// every file of the NATS store is read, and no byte of the session may be in
// either.
package erasure
