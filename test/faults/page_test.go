package faults

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/pgproxy"
	"github.com/engined/engined/test/faults/proc"
)

// TestAPageLosesPostgres cuts the connection at each point of storing a page of
// a host's transcript: the answer is 503, and the page again stores it once.
func TestAPageLosesPostgres(t *testing.T) {
	begin(t)
	s := newStack(t)
	proxy := newProxy(t, s.db)
	node := proc.Start(t, "node", s.nodeArgs(t, proxy.DSN())...)
	l := newLoad(t, node)
	g := &gateway{load: l, rand: newRand()}
	for _, query := range []string{"-- name: LockSession", "-- name: LaneView", "-- name: AppendEvents", "commit"} {
		for _, moment := range []pgproxy.Moment{pgproxy.Before, pgproxy.After} {
			session := fmt.Sprintf("agent:main:page:%s:%d", query, moment)
			ms := g.turn()
			w := l.rec.Begin(session, audit.Transcript, ms...)
			entries := make([][]byte, len(ms))
			for i, m := range ms {
				entries[i] = fmt.Appendf(nil, `{"type":"message","id":"e%d","parentId":null,"message":%s}`, i, m)
			}
			body := object("sessionId", quote("s"), "entries", array(entries))
			trap := proxy.Set(moment, query)
			trap.Cut()
			a := l.post(t.Context(), node.URL, session, "transcript", body)
			proc.Happens(t, query, trap.Caught())
			if a.status != http.StatusServiceUnavailable || a.retryAfter == "" {
				t.Errorf("%s: a lost connection answers %s", query, a)
			}
			if a = l.post(t.Context(), node.URL, session, "transcript", body); a.status != http.StatusOK {
				t.Errorf("%s: the page again answers %s", query, a)
				continue
			}
			w.Ack()
		}
	}
	l.audit(t, node.URL)
}
