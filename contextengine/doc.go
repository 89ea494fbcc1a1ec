// Package contextengine is the contract between a host that runs agents and an
// engine that decides what is stored, what the model sees and how old history
// is compacted.
//
// It follows OpenClaw's context engine slot (openclaw 2026.9.6): the required
// calls are Info, Ingest, Assemble and Compact; every other call is a small
// interface of its own that an engine implements or not (Bootstrapper,
// BatchIngester, TurnCommitter, AfterTurner, Maintainer, SubagentSpawner,
// SubagentEnder, Disposer). Field names are the contract's own camelCase, so
// that the same types are the wire of the HTTP API and of remote engines.
//
// Messages are opaque JSON: an engine reads what it needs and never rewrites
// them. What comes back from Assemble are the stored bytes.
//
// The package holds types only. It imports nothing but the standard library,
// knows no database, no clock and no transport.
package contextengine
