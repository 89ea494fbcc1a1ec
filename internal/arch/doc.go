// Package arch holds the rules about which package may import which, as a test.
// It has no code of its own: when its test fails, either the import is wrong or
// the design has changed, and then the rule changes in the same commit.
package arch
