package pgproxy

import (
	"slices"
	"strings"
)

// Trap catches one query at one moment and holds its connection until the test
// has decided.
type Trap struct {
	moment  Moment
	part    string
	caught  chan struct{}
	verdict chan bool
}

// Set lays a trap for the next query whose text contains part. It catches one.
func (p *Proxy) Set(m Moment, part string) *Trap {
	t := &Trap{moment: m, part: part, caught: make(chan struct{}), verdict: make(chan bool, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t
}

// Caught is closed when the query has walked in.
func (t *Trap) Caught() <-chan struct{} { return t.caught }

// Go lets the connection go on.
func (t *Trap) Go() { t.release(false) }

// Cut breaks the connection.
func (t *Trap) Cut() { t.release(true) }

func (t *Trap) release(cut bool) {
	select {
	case t.verdict <- cut:
	default: // decided already
	}
}

// Lift takes a trap away that has caught nothing yet.
func (p *Proxy) Lift(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.traps, t); i >= 0 {
		p.traps = slices.Delete(p.traps, i, i+1)
	}
}

// spring holds the caller when a trap waits for the query, and tells whether
// its connection is to be cut.
func (p *Proxy) spring(m Moment, query string) (cut bool) {
	var found *Trap
	p.mu.Lock()
	for i, t := range p.traps {
		if t.moment == m && strings.Contains(query, t.part) {
			select {
			case <-t.caught:
				continue // it has one
			default:
			}
			found = p.traps[i]
			close(t.caught)
			break
		}
	}
	p.mu.Unlock()
	if found == nil {
		return false
	}
	return <-found.verdict
}
