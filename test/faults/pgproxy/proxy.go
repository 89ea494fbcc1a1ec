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
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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

// Proxy is a listener on loopback in front of one server.
type Proxy struct {
	network, address string
	dsn              string
	listener         net.Listener
	running          sync.WaitGroup
	delay            atomic.Int64 // nanoseconds

	mu    sync.Mutex
	traps []*Trap
	conns map[net.Conn]struct{}
	shut  bool
}

// New starts a proxy in front of the server of a connection URL.
func New(ctx context.Context, dsn string) (*Proxy, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	p := &Proxy{conns: make(map[net.Conn]struct{})}
	p.network, p.address = "tcp", u.Host
	q := u.Query()
	if dir := q.Get("host"); strings.HasPrefix(dir, "/") {
		p.network, p.address = "unix", dir+"/.s.PGSQL."+q.Get("port")
	} else if u.Port() == "" {
		p.address = net.JoinHostPort(u.Hostname(), "5432")
	}
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	p.dsn = u.String()
	p.running.Go(p.accept)
	return p, nil
}

// DSN is the connection URL through the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// Close breaks every connection and waits until nothing of the proxy runs.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.shut = true
	for _, t := range p.traps {
		t.release(true)
	}
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.listener.Close()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), p.network, p.address)
		if err != nil {
			client.Close()
			continue
		}
		if !p.hold(client, server) {
			return
		}
		s := &session{proxy: p, client: client, server: server, prepared: make(map[string]string)}
		p.running.Go(func() { s.end(s.forward()) })
		p.running.Go(func() { s.end(s.backward()) })
	}
}

// hold keeps a pair of connections for Close to break.
func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.shut {
			c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.shut
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}
