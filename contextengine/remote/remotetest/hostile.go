// Package remotetest is a server that breaks the wire of a remote engine in
// every way we could think of, for tests of what has to survive one.
package remotetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Behaviour is one way to break the wire.
type Behaviour string

// What a Server can do to a call.
const (
	Hang           Behaviour = "hang"            // no answer, ever
	HangInBody     Behaviour = "hang in body"    // head and half a body, then nothing
	SlowDrip       Behaviour = "slow drip"       // a byte now and then, without end
	Late           Behaviour = "late"            // a fine answer, once the caller has left
	Crash          Behaviour = "crash"           // the connection ends without an answer
	CrashInBody    Behaviour = "crash in body"   // it ends within the body
	Reset          Behaviour = "reset"           // TCP reset
	InternalError  Behaviour = "500"             // a problem
	HTML500        Behaviour = "500 html"        // a proxy's page
	HTML           Behaviour = "200 html"        // a login page
	Empty          Behaviour = "empty"           // 200 and nothing
	Null           Behaviour = "null"            // a JSON null
	WrongShape     Behaviour = "wrong shape"     // every member of another type
	NoMembers      Behaviour = "no members"      // {}; a fine answer to after-turn alone
	OutOfRange     Behaviour = "out of range"    // seqs, heads and counts that cannot be
	InvalidJSON    Behaviour = "invalid json"    // text that only begins as JSON
	InvalidUTF8    Behaviour = "invalid utf-8"   // a message in Latin-1
	Trailing       Behaviour = "trailing"        // two answers in one
	Truncated      Behaviour = "truncated"       // shorter than its Content-Length
	TwoLengths     Behaviour = "two lengths"     // two different Content-Lengths
	NotHTTP        Behaviour = "not http"        // another protocol
	Huge           Behaviour = "huge"            // 100 MB, stated
	HugeChunked    Behaviour = "huge chunked"    // 100 MB, not stated
	HugeError      Behaviour = "huge error"      // 100 MB as a problem
	HugeHeader     Behaviour = "huge header"     // 8 MB of header
	ManyItems      Behaviour = "many items"      // 30 MB of the smallest messages
	Deep           Behaviour = "deep"            // a million brackets
	Compressed     Behaviour = "compressed"      // gzip, unasked
	Redirect       Behaviour = "redirect"        // to itself
	BadProblem     Behaviour = "bad problem"     // a conflict that names no epoch
	EarlyHints     Behaviour = "early hints"     // informational answers without end
	NotImplemented Behaviour = "not implemented" // 501 to everything, required calls too
)

// All are all behaviours.
func All() []Behaviour {
	return []Behaviour{
		Hang, HangInBody, SlowDrip, Late, Crash, CrashInBody, Reset, InternalError, HTML500, HTML, Empty, Null,
		WrongShape, NoMembers, OutOfRange, InvalidJSON, InvalidUTF8, Trailing, Truncated, TwoLengths, NotHTTP, Huge, HugeChunked,
		HugeError, HugeHeader, ManyItems, Deep, Compressed, Redirect, BadProblem, EarlyHints, NotImplemented,
	}
}

// HugeBytes is the size of the Huge answers.
const HugeBytes = 100_000_000

// Fine is an answer that every call of the contract accepts.
const Fine = `{"ingested":true,"ingestedCount":0,"seq":1,"head":1,"epoch":1,"bootstrapped":true,"status":"committed",` +
	`"compaction":"none","messages":[],"estimatedTokens":0,"ok":true,"compacted":false,"reason":"nothing to compact","changed":false}`

// Server is a hostile engine on a loopback port. GET /v1/engine is answered
// well, so that a client can connect; every other call is met by the behaviour.
type Server struct {
	// URL is the engine's base.
	URL string

	behaviour atomic.Value
	calls     atomic.Int64
	http      *http.Server
	closing   chan struct{}
	once      sync.Once
	done      chan struct{}
}

// Start serves until Close.
func Start(b Behaviour) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("hostile engine: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), closing: make(chan struct{}), done: make(chan struct{})}
	s.Set(b)
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 1 << 16}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // always "closed"
	}()
	return s, nil
}

// Set changes what the next calls meet.
func (s *Server) Set(b Behaviour) { s.behaviour.Store(b) }

// Calls is how many calls have come.
func (s *Server) Calls() int64 { return s.calls.Load() }

// Close ends all connections and waits for the listener.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closing) })
	_ = s.http.Close()
	<-s.done
}

// gone is closed when the caller has left or the server closes.
func (s *Server) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/engine" {
		_, _ = w.Write([]byte(`{"id":"hostile","name":"Hostile engine","ownsCompaction":true}`))
		return
	}
	s.calls.Add(1)
	// The server notices that a caller has left only once the body is read.
	_, _ = new(bytes.Buffer).ReadFrom(r.Body)
	b, _ := s.behaviour.Load().(Behaviour)
	if raw, ok := rawAnswers[b]; ok {
		hijack(w, raw, b == Reset)
		return
	}
	if plain, ok := plainAnswers[b]; ok {
		w.Header().Set("Content-Type", plain.media)
		w.WriteHeader(plain.status)
		_, _ = w.Write([]byte(plain.body))
		return
	}
	s.odd(b, w, r)
}

type plain struct {
	status int
	media  string
	body   string
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	problems    = "https://github.com/engined/engined/problems/"
)

var plainAnswers = map[Behaviour]plain{
	InternalError: {500, problemType, `{"type":"` + problems + `internal","title":"x","status":500,"detail":"out of luck"}`},
	HTML500:       {502, "text/html", "<html><body><h1>502 Bad Gateway</h1>\x00\x1b[31m</body></html>"},
	HTML:          {200, "text/html", "<!doctype html><title>Log in</title>"},
	Empty:         {200, jsonType, ""},
	Null:          {200, jsonType, "null"},
	NoMembers:     {200, jsonType, "{}"},
	OutOfRange: {200, jsonType, strings.NewReplacer(`"seq":1`, `"seq":-1`, `"head":1`, `"head":9223372036854775807`, `"epoch":1`, `"epoch":-9`,
		`"changed":false`, `"changed":true,"bytesFreed":-1,"rewrittenEntries":-1`).Replace(Fine)},
	InvalidJSON:    {200, jsonType, `{"messages":[{"role":"user"},`},
	InvalidUTF8:    {200, jsonType, strings.Replace(Fine, `"nothing`, "\"\xe9\xff", 1)},
	Trailing:       {200, jsonType, Fine + Fine},
	Deep:           {200, jsonType, `{"messages":` + strings.Repeat("[", 1_000_000)},
	BadProblem:     {409, problemType, `{"type":"` + problems + `epoch-conflict","status":200,"epoch":null}`},
	NotImplemented: {501, problemType, `{"type":"` + problems + `unsupported","status":501}`},
	WrongShape: {200, jsonType, `{"ingested":"yes","ingestedCount":"many","seq":"1","seqs":{},"head":"one","bootstrapped":1,` +
		`"status":7,"messages":{"role":"user"},"estimatedTokens":[],"ok":"ok","compacted":2,"changed":"no"}`},
}

// rawAnswers are written past net/http.
var rawAnswers = map[Behaviour]string{
	Crash:       "",
	Reset:       "",
	CrashInBody: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"mes",
	Truncated:   "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"messages\":[]",
	TwoLengths:  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 200\r\n\r\n{}",
	NotHTTP:     "220 smtp.example ESMTP\r\n",
}

func hijack(w http.ResponseWriter, raw string, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(raw))
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
}
