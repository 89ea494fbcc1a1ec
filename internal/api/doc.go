// Package api is the HTTP face of a context engine: routes, keys, problem
// details, limits, streams and the OpenAPI document.
//
// The wire is the contract itself: request bodies are the parameters of package
// contextengine and answers are its results. A message is opaque: it is read
// once as raw JSON, and answers that carry messages are written from the stored
// bytes, never through encoding/json, which would rewrite them.
//
// One table of operations (operation.go) feeds both the router, which is the
// standard mux, and the OpenAPI document, whose schemas huma derives from the
// same Go types. huma does not serve the requests: its validation decodes a
// body twice and walks it. Storing a message of 2 KB took a third, one of 50 KB
// a tenth of the time without it (BenchmarkIngest), and it has no notion of
// bytes that must stay as they are.
//
// Errors are RFC 9457 problem details. Every input, however broken, is answered
// with a 4xx problem; 5xx means that the node or what it needs is in trouble.
package api
