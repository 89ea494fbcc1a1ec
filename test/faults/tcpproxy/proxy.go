// Package tcpproxy stands between clients and a server on loopback and breaks
// or slows what goes through, whatever it says. It knows no protocol.
package tcpproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a listener in front of one server, which may come and go.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup
	delay    atomic.Int64 // nanoseconds
	drops    atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	shut  bool
}

// New starts a proxy in front of a host:port.
func New(ctx context.Context, target string) (*Proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("tcpproxy: %w", err)
	}
	p := &Proxy{target: target, listener: l, conns: make(map[net.Conn]struct{})}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// CutAll breaks every connection at once. New ones are taken.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Slow holds back for d whatever goes through; 0 ends that.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// DropAnswers breaks the connections of the next n answers instead of
// forwarding them: the server has done what it was asked, and nobody learns of
// it. It returns how many of an earlier call were still to come.
func (p *Proxy) DropAnswers(n int) int { return int(p.drops.Swap(int64(n))) }

// Close breaks every connection and waits until nothing of the proxy runs.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.shut = true
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
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		if !p.hold(client, server) {
			return
		}
		p.running.Go(func() { p.pipe(server, client, false) })
		p.running.Go(func() { p.pipe(client, server, true) })
	}
}

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

func (p *Proxy) pipe(to, from net.Conn, answers bool) {
	defer p.drop(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if answers && p.takeDrop() {
				return
			}
			if d := time.Duration(p.delay.Load()); d > 0 {
				<-time.After(d)
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// takeDrop tells whether this answer is one to drop.
func (p *Proxy) takeDrop() bool {
	for {
		n := p.drops.Load()
		if n <= 0 {
			return false
		}
		if p.drops.CompareAndSwap(n, n-1) {
			return true
		}
	}
}
