// Package search says what a text's words are, what a query asks for, whether
// a text holds it, and how well. It exists so that any language, identifier
// or sign can be found without an extension of the database: the store keeps
// an index of Terms, and everything exact is decided here, on the text.
//
// A text is a row of atoms. A word (letters and digits) is one atom, a
// character of a script without blanks (Han, kana, hangul, Thai …) is one, and
// so is every other sign. A query is a list of units: atoms that must stand in
// the text in this order, with blanks where the query has blanks. `chat-send`
// is one unit of three atoms, so it is found as it stands and nowhere else.
//
// The package is pure: no clock, no driver, no global state.
package search
