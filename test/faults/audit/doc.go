// Package audit tells whether a service kept its promises while it was being
// broken: a [Recorder] notes what clients sent and what was acknowledged to
// them, and [Check] holds a session's log against those notes.
//
// It knows nothing of how the service works. All it relies on is that every
// message a client sends is unlike any other, so that its bytes identify it.
package audit
