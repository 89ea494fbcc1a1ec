// Package pgproxy stands between a program and its Postgres and breaks their
// connection at chosen points: right before a query is forwarded, or when the
// server has finished it and before the program learns of that. A commit whose
// reply is lost, which happens once in a million by chance, happens on demand.
//
// Queries are chosen by a part of their text; those that sqlc generates carry
// their name in a comment.
package pgproxy

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/engined/engined/test/faults/relay"
)

// Moment is where in a query's life a trap waits.
type Moment int

// The moments.
const (
	// Before the query is forwarded to the server.
	Before Moment = iota
	// After the server has finished, commit included, and before the reply is
	// forwarded to the program.
	After
)

// Proxy is a listener on loopback in front of one server. Slow holds back each
// round of queries before it is forwarded.
type Proxy struct {
	*relay.Relay

	dsn string

	mu    sync.Mutex
	traps []*Trap
}

// New starts a proxy in front of the server of a connection URL.
func New(ctx context.Context, dsn string) (*Proxy, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	network, address := "tcp", u.Host
	q := u.Query()
	if dir := q.Get("host"); strings.HasPrefix(dir, "/") {
		network, address = "unix", dir+"/.s.PGSQL."+q.Get("port")
	} else if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "5432")
	}
	p := &Proxy{}
	p.Relay, err = relay.New(ctx, network, address, func(client, server net.Conn) relay.Directions {
		s := &session{proxy: p, client: client, server: server, prepared: make(map[string]string)}
		return relay.Directions{Forward: func() { _ = s.forward() }, Backward: func() { _ = s.backward() }} // how it ended is nobody's
	})
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.Addr(), q.Encode()
	p.dsn = u.String()
	return p, nil
}

// DSN is the connection URL through the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// Close breaks every connection and waits until nothing of the proxy runs.
func (p *Proxy) Close() {
	p.mu.Lock()
	for _, t := range p.traps {
		t.release(true)
	}
	p.mu.Unlock()
	p.Relay.Close()
}
