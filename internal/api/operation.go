package api

import (
	"net/http"
	"reflect"
	"time"

	"github.com/engined/engined/internal/access"
)

// pace says how long an operation may take.
type pace uint8

const (
	ordinary pace = iota
	compaction
	stream
)

// operation is one row of the table that both the router and the OpenAPI
// document are made from.
type operation struct {
	method, path string
	id, tag      string
	summary      string
	description  string
	kind         pace
	// public needs no key; keyed has a session key in its path.
	public, keyed bool
	// scopes are whose keys may call it; see callers.
	scopes access.Scopes
	// request and answer are Go types whose schemas describe the wire.
	request, answer reflect.Type
	// media is the answer's content type where it is not JSON.
	media        string
	bodyOptional bool
	query        []queryParam
	refusals     []kind
	serve        func(*call) error
	observe      func(status int, took time.Duration)
}

// queryParam documents a parameter outside the body.
type queryParam struct {
	name, in, doc string
	integer       bool
	least         float64
}

const (
	sessionPath = "/v1/sessions/{key}"
	tagTurns    = "Turns"
	tagWindows  = "Windows"
	tagSessions = "Sessions"
	tagFeed     = "Feed"
	tagSearch   = "Search"
	tagNode     = "Node"
)

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// operations is the API. Their order is the document's.
func operations() []*operation {
	var ops []*operation
	for _, part := range [][]*operation{
		turnOperations(), transcriptOperations(), windowOperations(), stepOperations(), branchOperations(), sessionOperations(), lifeOperations(), eventOperations(),
		summaryOperations(), searchOperations(), feedOperations(), summarizerOperations(), nodeOperations(), auditOperations(),
	} {
		ops = append(ops, part...)
	}
	who := callers()
	for _, op := range ops {
		op.scopes = who[op.id]
	}
	return ops
}

func post(path, id, tag, summary string, serve func(*call) error) *operation {
	return &operation{method: http.MethodPost, path: sessionPath + path, id: id, tag: tag, summary: summary, keyed: true, serve: serve}
}

func get(path, id, tag, summary string, serve func(*call) error) *operation {
	return &operation{method: http.MethodGet, path: path, id: id, tag: tag, summary: summary, serve: serve}
}
