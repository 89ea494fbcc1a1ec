// Package window decides what a model sees of a session: which messages, in
// which order, behind which summaries, within which budget.
//
// A window is planned from facts alone and is a pure function of them: Build
// takes what the log says of each message (role, token estimate, call ids) and
// answers with a Plan; only then are the chosen bodies read, and Plan.Render
// puts them together byte for byte. No clock, no driver, no memory of earlier
// answers, so every node plans the same window.
//
// Six rules shape it, each in a file of its own:
//
//   - pair.go: an assistant's calls and their results are one unit that no cut
//     divides; a unit whose calls stay unanswered is left out whole.
//   - fit.go: what does not fit leaves from the old end, down to an edge that
//     ruler.go picks from the log and the budget only, so that the prefix of
//     the window moves rarely and a larger budget never shows less.
//   - standin.go: shows less of summaries that have no room, before any leaves.
//   - prune.go: shows less of old tool results, where that is wanted.
//   - fingerprint.go: says when an earlier window is still a prefix.
//   - pages.go: tells a reader that walks the log backwards when it has read
//     enough for the plan to be the same as with everything.
package window
