// Package remote lets an engine live in another process, in any language.
//
// Client is a contextengine.Engine that speaks HTTP; Handler serves any Engine
// on the same wire. The wire is the one of engined's own API: the contract's
// parameters are the request bodies, its results the answers, messages are
// copied byte for byte both ways and errors are RFC 9457 problems:
//
//	POST {base}/v1/sessions/{key}/ingest        IngestParams    → IngestResult
//	POST {base}/v1/sessions/{key}/assemble      AssembleParams  → AssembleResult
//	POST {base}/v1/sessions/{key}/compact       CompactParams   → CompactResult
//	POST {base}/v1/sessions/{key}/ingest-batch  optional, as are bootstrap,
//	     commit-turn, after-turn, maintain and the calls on subagents
//	GET  {base}/v1/engine                       Info and the calls it serves
//
// A call that an engine lacks answers 501 with the slug "unsupported"; the
// client returns an error that is errors.ErrUnsupported, and the host falls
// back as it does for an engine without that method.
//
// The client trusts nothing. Every call has a deadline that also covers the
// body, an answer larger than a limit is an error and not memory, redirects and
// compressed answers are refused, and what is not the contract's shape is a
// ProtocolError. It starts no goroutine of its own.
package remote
