// Package summarize turns old messages, or older summaries, into one shorter
// text that takes their place in a window.
//
// A Summarizer is a model or a rule. Extractive needs no model: it keeps what an
// agent cannot do without, word for word, and gives the same text for the same
// input. Accept says whether a text may stand in for its source at all; it holds
// for every summarizer.
//
// Source text is data. It is quoted with who said it, and never read as an
// instruction.
package summarize
