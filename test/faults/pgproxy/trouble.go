package pgproxy

import "time"

// CutAll breaks every connection at once. New ones are taken.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Slow holds each round of queries back for d before it is forwarded; 0 ends
// that.
func (p *Proxy) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// pause waits as long as a round is held back.
func (p *Proxy) pause() {
	if d := time.Duration(p.delay.Load()); d > 0 {
		<-time.After(d)
	}
}

// Lift takes a trap away that has caught nothing yet.
func (p *Proxy) Lift(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.traps {
		if p.traps[i] == t {
			p.traps = append(p.traps[:i], p.traps[i+1:]...)
			return
		}
	}
}
