// Package retrieval keeps the search index behind the log and answers from it.
//
// An Indexer follows the gap-safe feed of each tenant and writes the texts of
// messages, tool results, tool calls and summaries as parts; an append pays
// nothing for it. A Searcher answers queries: the store finds what may match by
// its index, package search decides and ranks on the text. An engine that puts
// what it finds into a window asks with PlaceScopes.
package retrieval
