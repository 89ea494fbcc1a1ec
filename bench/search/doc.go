// Command search measures what a search costs in a tenant of many long
// sessions: queries of every kind through the same Searcher that a node has,
// beside a plain text search of Postgres (to_tsvector('simple'), a GIN index,
// ts_rank) over the same texts in the same run.
//
// The corpus is transcripts, stored again and again under other session keys
// until it has as many messages as asked for.
package main
