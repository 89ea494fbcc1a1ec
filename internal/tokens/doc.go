// Package tokens estimates what a text or message costs a model, fast enough
// for the ingest path and never below the truth beyond StatedError.
//
// Text walks the text once the way o200k_base splits it and asks a small
// filter of that vocabulary whether a piece is one token; only what is not is
// cut further. Other models count otherwise: a factor learned from the usage
// that a host reports (Calibrate) is applied on top, by the caller, once for
// each epoch.
//
// The package is pure: no clock, no driver, no state.
package tokens
