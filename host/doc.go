// Package host is the turn loop of a gateway: what has to happen between a
// user's message and the model's answer so that a context engine can do its work.
//
// A turn is
//
//	bootstrap, maintain      unless it is the session's first turn
//	assemble                 again before every further model call, if the engine owns compaction
//	the model, tools         until the model calls no tool
//	commit, maintain         only if the model answered
//
// When a model call is refused as too large, the loop has the engine compact and
// starts over: at most three times, and it never sends a payload again that was
// refused. Near the budget it compacts before the model has to refuse.
//
// An engine that fails costs no turn: the gateway's own messages are used. Its
// calls have deadlines, and a turn that is aborted ends at once even if an
// engine, a model or a tool does not listen. An aborted or failed turn commits
// nothing. Turns of one session run one after the other.
//
// The package imports the contract alone. The model and the tools are small
// interfaces; messages are opaque and may be in any dialect that the engine reads.
package host
