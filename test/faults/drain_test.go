package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/engined/engined/test/faults/audit"
)

// TestANodeDrainsUnderLoad ends a node as a supervisor does. A call that it took
// is answered; one that it did not take has had no effect; it exits with 0.
func TestANodeDrainsUnderLoad(t *testing.T) {
	begin(t)
	s := newStack(t)
	leaving, staying := s.node(t, "leaving node"), s.node(t, "staying node")
	s.worker(t, "worker")
	l := newLoad(t, staying)

	ctx, stop := context.WithTimeout(t.Context(), span(t))
	defer stop()
	rounds := 0
	for ; ctx.Err() == nil; rounds++ {
		before := l.acked.Load()
		var all sync.WaitGroup
		for i := range 8 {
			g := &gateway{load: l, id: rounds*100 + i, rand: rand.New(rand.NewPCG(7420, uint64(rounds*100+i)))}
			all.Go(func() { g.untilGone(leaving.URL) })
		}
		await(t, "the load runs", func() bool { return l.acked.Load() >= before+100 })
		leaving.End(t)
		all.Wait()
		leaving = leaving.Again(t)
	}
	t.Logf("%d ends, %d writes acknowledged, %d sent again, %d never taken", rounds, l.acked.Load(), l.again.Load(), l.rec.Count(audit.Refused))
	for _, trouble := range l.troubles {
		t.Error(trouble)
	}
	l.settle(t, staying.URL)
	l.audit(t, staying.URL)
}

// untilGone commits turns at a node until nobody listens there. A connection
// that had served calls before may close under a request, as HTTP has it, and
// the request is sent again elsewhere; on a new connection that means that the
// call was not taken.
func (g *gateway) untilGone(url string) {
	l := g.load
	session := "agent:main:drain"
	for {
		ms := g.turn()
		w := l.rec.Begin(session, audit.Commit, ms...)
		body := object("advancementKey", quote(g.name(0)), "messages", array(ms), "tokenBudget", fmt.Append(nil, budget))
		a := l.post(context.Background(), url, session, "commit-turn", body)
		switch {
		case a.err != nil && !a.reused:
			w.Refuse()
			return
		case a.err != nil:
			l.again.Add(1)
			if a = l.post(context.Background(), l.urls[0], session, "commit-turn", body); a.err != nil || a.status != http.StatusOK {
				l.troublef("not taken elsewhere: %s", a)
				return
			}
		case a.status != http.StatusOK:
			l.troublef("a draining node answers %s", a)
			return
		}
		w.Ack()
		l.acked.Add(1)
	}
}
