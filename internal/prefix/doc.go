// Package prefix tells how much of each window a provider's prompt cache can
// reuse. Providers bill the part of a prompt that equals the beginning of an
// earlier one at a fraction; everything behind the first difference is billed
// anew. So what a compaction saves must be held against the prefix it breaks.
//
// The package is pure.
package prefix
