// Package hostlog reads the entries of a host's transcript and follows the tree
// they form: what a host shows its model is the walk from the transcript's leaf
// to its root or to the newest reset. The package is pure, so that what a
// rewind, a branch switch or a reset means can be tested without a server.
package hostlog
