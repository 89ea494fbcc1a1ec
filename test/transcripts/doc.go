// Package transcripts holds the service against real conversations: its tests
// import transcripts of agents, compact them and look at every window in
// between as a strict provider would.
//
// The checks share no code with what they check. Messages are read again with
// encoding/json, tokens are counted with the o200k vocabulary, and what a
// window may hold is worked out from the transcript alone.
//
// A few transcripts are in testdata. ENGINED_TRANSCRIPTS names a folder with
// more, one folder for each kind: pi, openclaw, claude-code, tau-bench.
package transcripts
