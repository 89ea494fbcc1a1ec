// Package tokens estimates what a text or message costs a model, fast enough
// for the ingest path and never below the truth beyond StatedError.
//
// Text splits a text the way o200k_base does and merges the bytes of each piece
// by that vocabulary, which is embedded. Other models count otherwise; the
// factor that an epoch's state holds for that is applied by the caller.
//
// The package is pure: no clock, no driver, no state.
package tokens
