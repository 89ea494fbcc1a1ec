// Package tcpproxy stands between clients and a server on loopback and breaks
// or slows what goes through, whatever it says. It knows no protocol.
package tcpproxy

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/engined/engined/test/faults/relay"
)

// Proxy is a listener in front of one server, which may come and go. Slow holds
// back whatever goes through.
type Proxy struct {
	*relay.Relay

	drops atomic.Int64
}

// New starts a proxy in front of a host:port.
func New(ctx context.Context, target string) (*Proxy, error) {
	p := &Proxy{}
	var err error
	p.Relay, err = relay.New(ctx, "tcp", target, func(client, server net.Conn) relay.Directions {
		return relay.Directions{
			Forward:  func() { p.pipe(server, client, false) },
			Backward: func() { p.pipe(client, server, true) },
		}
	})
	if err != nil {
		return nil, fmt.Errorf("tcpproxy: %w", err)
	}
	return p, nil
}

// DropAnswers breaks the connections of the next n answers instead of
// forwarding them: the server has done what it was asked, and nobody learns of
// it. It returns how many of an earlier call were still to come.
func (p *Proxy) DropAnswers(n int) int { return int(p.drops.Swap(int64(n))) }

func (p *Proxy) pipe(to, from net.Conn, answers bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if answers && p.takeDrop() {
				return
			}
			p.Pause()
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
