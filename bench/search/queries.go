package main

import (
	"github.com/engined/engined/internal/retrieval"
)

// query is one of the kinds that are measured. plain is the same for Postgres'
// own text search, as a tsquery; "" where it has nothing like it.
type query struct {
	name, plain string
	request     retrieval.Request
}

const (
	session  = "before-compaction:1"
	question = "how is the session switched when a user resumes an older one, and which file has the function that handles it?"
	asked    = "session | switched | user | resumes | older | one | file | function | handles"
)

var queries = []query{
	{"one rare word", "handleresumesession", retrieval.Request{Query: "handleResumeSession"}},
	{"one frequent word", "file", retrieval.Request{Query: "file"}},
	{"two frequent words", "session & file", retrieval.Request{Query: "session file"}},
	{"four frequent words", "the & to & of & a", retrieval.Request{Query: "the to of a"}},
	{"phrase", "switch <-> session", retrieval.Request{Query: `"switch session"`}},
	{"phrase of frequent words", "in <-> the", retrieval.Request{Query: `"in the"`}},
	{"one character, CJK", "", retrieval.Request{Query: "修"}},
	{"two characters, CJK", "", retrieval.Request{Query: "実装"}},
	{"prefix", "handle:*", retrieval.Request{Query: "handle*"}},
	{"frequent prefix", "s:*", retrieval.Request{Query: "s*"}},
	{"path", "packages & coding & agent", retrieval.Request{Query: "packages/coding-agent"}},
	{"frequent sign", "", retrieval.Request{Query: "->"}},
	{"newest first", "", retrieval.Request{Query: "session file", Sort: retrieval.SortRecent}},
	{"expression", "", retrieval.Request{Query: `handle\w+Session\(\)`, Regex: true}},
	{"expression, nothing found", "", retrieval.Request{Query: `qq[a-z]{5}zz\d+`, Regex: true}},
	{"question, talk", "caroline | go | lgbtq | support | group", retrieval.Request{Query: "When did Caroline go to the LGBTQ support group?", Match: retrieval.MatchAny}},
	{"question, long", asked, retrieval.Request{Query: question, Match: retrieval.MatchAny}},
	{"in a session: rare word", "handleresumesession", retrieval.Request{Query: "handleResumeSession", SessionKey: session}},
	{"in a session: two frequent words", "session & file", retrieval.Request{Query: "session file", SessionKey: session}},
	{"in a session: phrase", "in <-> the", retrieval.Request{Query: `"in the"`, SessionKey: session}},
	{"in a session: frequent prefix", "s:*", retrieval.Request{Query: "s*", SessionKey: session}},
	{"in a session: long question", asked, retrieval.Request{Query: question, Match: retrieval.MatchAny, SessionKey: session}},
	{"in a session: newest first", "", retrieval.Request{Query: "session file", SessionKey: session, Sort: retrieval.SortRecent}},
	{"in a session: expression", "", retrieval.Request{Query: `handle\w+Session\(\)`, Regex: true, SessionKey: session}},
}
