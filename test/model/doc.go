// Package model holds the HTTP API against a model of it in memory: random
// programs of appends, turns, compactions, resets, rewinds, forks, erasures and
// reads, each call at one of two nodes, and after each step the answer, the
// window, an earlier window and the log must be what the model says.
package model
