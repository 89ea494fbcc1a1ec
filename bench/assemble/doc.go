// Package assemble measures what a window costs: on a node that has it at
// hand, on one that is behind by a turn, and on one that never saw the session,
// for short and long histories.
//
//	go test -run '^$' -bench . -benchmem ./bench/assemble
package assemble
