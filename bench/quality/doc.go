// Quality measures what windows and searches still know of a long past: on
// LoCoMo, conversations with questions and the turns that answer them, and on
// real transcripts of agents. Baselines run over the same messages in the same
// run. Nothing here asks a model: summaries are extractive, and an answer
// counts as known when the turn that holds it is shown, or found.
package main
