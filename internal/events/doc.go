// Package events says what can happen to a session: the event types, their
// payloads and the fold that turns events into session state.
//
// An event is immutable. Its seq is 1, 2, 3 … without gaps within a session;
// everything else the system shows folds from events and can be dropped and
// rebuilt. The package is pure: no clock, no driver, no global state.
package events
