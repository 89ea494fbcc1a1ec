// Command compaction measures what the compaction of a very long session costs:
// how long its stages take, how much memory the process needs for it, and what
// other sessions notice meanwhile, beside the same load without it.
//
// It runs `engined dev` as it is: node, worker and NATS in one process, so the
// load and the compaction share its memory and this machine's processors.
package main
