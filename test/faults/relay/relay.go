// Package relay is what the proxies of the fault tests have in common: a listener
// on loopback in front of one server, connections in pairs that can be broken at
// once or slowed down, and an end that waits for all of it.
package relay

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Relay is the listener. The server may come and go.
type Relay struct {
	network, address string
	listener         net.Listener
	running          sync.WaitGroup
	delay            atomic.Int64 // nanoseconds

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	shut  bool
}

// Directions are what is done with a pair of connections, each until it ends.
// When one has ended both connections are closed.
type Directions struct{ Forward, Backward func() }

// New starts to listen in front of a server.
func New(ctx context.Context, network, address string, pair func(client, server net.Conn) Directions) (*Relay, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{network: network, address: address, listener: l, conns: make(map[net.Conn]struct{})}
	r.running.Go(func() { r.accept(pair) })
	return r, nil
}

// Addr is the listener's host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// CutAll breaks every connection at once. New ones are taken.
func (r *Relay) CutAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// Slow has Pause wait for d; 0 ends that.
func (r *Relay) Slow(d time.Duration) { r.delay.Store(int64(d)) }

// Pause holds its caller back as long as Slow said.
func (r *Relay) Pause() {
	if d := time.Duration(r.delay.Load()); d > 0 {
		<-time.After(d)
	}
}

// Close breaks every connection and waits until nothing of the relay runs.
func (r *Relay) Close() {
	r.mu.Lock()
	r.shut = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.listener.Close()
	r.running.Wait()
}

func (r *Relay) accept(pair func(client, server net.Conn) Directions) {
	for {
		client, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), r.network, r.address)
		if err != nil {
			client.Close()
			continue
		}
		if !r.hold(client, server) {
			return
		}
		d := pair(client, server)
		for _, run := range []func(){d.Forward, d.Backward} {
			r.running.Go(func() {
				defer r.drop(client, server)
				run()
			})
		}
	}
}

// hold keeps a pair of connections for Close to break.
func (r *Relay) hold(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.shut {
			c.Close()
			continue
		}
		r.conns[c] = struct{}{}
	}
	return !r.shut
}

func (r *Relay) drop(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(r.conns, c)
	}
}
