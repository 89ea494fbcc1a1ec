// Command echo-engine is a whole context engine: it keeps the last messages of
// each session in memory and shows them. Serve it, and it is a URL in engined's
// configuration or in any gateway that uses contextengine/remote.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"

	ce "github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

// Echo keeps Last messages of each session.
type Echo struct {
	Last     int
	mu       sync.Mutex
	sessions map[string]ce.AssembleResult
}

func (e *Echo) Info() ce.Info { return ce.Info{ID: "echo", Name: "Last messages", Version: "1"} }

func (e *Echo) Ingest(_ context.Context, p ce.IngestParams) (ce.IngestResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[p.Tenant+"\n"+p.SessionKey]
	all := slices.Concat(s.Messages, []json.RawMessage{p.Message}) // a copy: windows are shared
	s.Messages = all[max(0, len(all)-e.Last):]
	s.Head++
	e.sessions[p.Tenant+"\n"+p.SessionKey] = s
	return ce.IngestResult{Ingested: true, Seq: s.Head, Head: s.Head, Epoch: 1}, nil
}

func (e *Echo) Assemble(_ context.Context, p ce.AssembleParams) (ce.AssembleResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[p.Tenant+"\n"+p.SessionKey]
	for _, m := range s.Messages {
		s.EstimatedTokens += len(m) / 4
	}
	return s, nil
}

func (e *Echo) Compact(context.Context, ce.CompactParams) (ce.CompactResult, error) {
	return ce.CompactResult{OK: true, Reason: "nothing to compact"}, nil
}

func main() {
	listen, token := flag.String("listen", "127.0.0.1:7430", "address to serve on"), flag.String("token", "", "bearer token to demand")
	last := flag.Int("last", 200, "messages to keep of a session")
	flag.Parse()
	handler := remote.Handler(&Echo{Last: *last, sessions: map[string]ce.AssembleResult{}}, remote.HandlerOptions{Token: *token})
	log.Fatal((&http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe())
}
