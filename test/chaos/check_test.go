package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/engined/engined/internal/client"
	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/proc"
)

// await polls until done, or says that it waited in vain.
func (r *run) await(what string, done func() bool) bool {
	for deadline := time.Now().Add(proc.Patience); !done(); {
		if time.Now().After(deadline) {
			r.troublef("waited in vain: %s", what)
			return false
		}
		<-time.After(20 * time.Millisecond)
	}
	return true
}

// erase takes a session away while clients write to it.
func (r *run) erase(cycle int, s *session) {
	c := r.client(cycle, 102)
	if !c.commit(s, c.turn(s), nil) { // there is something to erase
		return
	}
	s.erasing.Store(true)
	var all sync.WaitGroup
	gone := make(chan struct{})
	for i := range 2 {
		c := r.client(cycle, 100+i)
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-gone:
					return
				default:
					c.commit(s, c.turn(s), nil)
				}
			}
		})
	}
	a := c.ask(http.MethodDelete, path(s, ""), nil)
	if !a.ok() && a.status != http.StatusNotFound { // a retry finds nothing
		r.troublef("erasure of %s: %s", s.key, a)
	}
	close(gone)
	all.Wait()
	r.late(c, s)
	r.erased = append(r.erased, s)
}

// late holds an erased session to being gone.
func (r *run) late(c *gateway, s *session) {
	for _, call := range []string{"ingest", "commit-turn", "ingest-batch"} {
		m := c.say(s, "user")
		body := object("message", m, "messages", array([][]byte{m}), "advancementKey", quote(fmt.Sprintf("%s-late-%d", c.name, s.made.Add(1))))
		if a := c.ask(http.MethodPost, path(s, call), body); a.slug != "session-erased" && !a.away() {
			r.troublef("a late %s to %s: %s", call, s.key, a)
		}
	}
	if a := c.ask(http.MethodGet, path(s, "events"), nil); a.status != http.StatusNotFound && !a.away() {
		r.troublef("%s is erased and read: %s", s.key, a)
	}
	var w audit.Window
	if a := c.ask(http.MethodPost, path(s, "assemble"), object("tokenBudget", number(budget))); !a.away() && (json.Unmarshal(a.body, &w) != nil || w.Head != 0 || len(w.Messages) > 0) {
		r.troublef("%s is erased and shown: %s", s.key, a)
	}
}

// branches makes children of a session that leaves.
func (r *run) branches(cycle int, s *session) {
	if !r.rec.Acked(s.key) {
		return
	}
	c := r.client(cycle, 200)
	child := &session{key: s.key + ":child"}
	child.mark = markOf(fmt.Sprint(r.seed, child.key))
	if c.branch(s, child) {
		r.old = append(r.old, child)
	} else {
		r.undone = append(r.undone, child.key)
	}
}

// gone are the keys of sessions that were erased, or rolled back.
func (r *run) gone() map[string]bool {
	out := make(map[string]bool)
	for _, s := range r.erased {
		out[s.key] = true
	}
	for _, key := range r.undone {
		out[key] = true
	}
	return out
}

// settle ends the work of sessions that leave: with a turn, for only turns make
// a session owe, and with the compactions that they owe.
func (r *run) settle(cycle int, out []*session) {
	c := r.client(cycle, 300)
	for _, s := range out {
		if s.erasing.Load() {
			continue
		}
		if s.kind == mirrored {
			c.sync(s)
		} else {
			c.commit(s, c.turn(s), nil)
		}
	}
	for _, s := range out {
		if !s.erasing.Load() {
			r.paid(s)
		}
	}
}

// paid waits until a session has the compactions that it was told to owe.
func (r *run) paid(s *session) {
	r.await("the compactions that "+s.key+" owes", func() bool {
		var row struct{ Debt, Epoch int64 }
		a := r.call(http.MethodGet, r.nodes[0].url, path(s, ""), nil)
		return a.ok() && json.Unmarshal(a.body, &row) == nil && row.Debt == 0 && row.Epoch > r.rec.Owed(s.key)
	})
}

// log reads a session's whole log at a node.
func (r *run) log(at int, s *session) []audit.Row {
	var out []audit.Row
	for after := int64(0); ; {
		var page struct {
			Events []client.Event
			Next   *int64
		}
		read := func() bool {
			a := r.call(http.MethodGet, r.nodes[at%len(r.nodes)].url, fmt.Sprintf("%s?limit=500&after=%d", path(s, "events"), after), nil)
			if a.away() {
				return false
			}
			if !a.ok() || json.Unmarshal(a.body, &page) != nil {
				r.troublef("log of %s: %s", s.key, a)
			}
			return true
		}
		if !r.await("the log of "+s.key, read) {
			return out
		}
		for _, e := range page.Events {
			out = append(out, audit.Row{Seq: e.Seq, Type: e.Type, Epoch: e.Epoch, Message: e.Message, Data: e.Data})
		}
		if page.Next == nil {
			return out
		}
		after = *page.Next
	}
}

// check holds the sessions of a cycle against what their clients know: those
// that live on by their logs, those that leave in every way.
func (r *run) check(out []*session) {
	for _, s := range r.active() {
		if r.rec.Acked(s.key) {
			r.audit(0, s)
		}
	}
	for i, s := range out {
		if s.erasing.Load() {
			continue
		}
		log := r.audit(i, s)
		ops := s.history()
		for _, found := range linearizable(newHistory(s.key, log), ops) {
			r.troublef("%s", found)
		}
		r.window(s, log)
		r.seenBy(s, log)
		r.resume(s, log)
		r.checked.events += len(log)
		r.checked.calls += len(ops)
		s.ops, s.script, s.entries = nil, nil, nil
		r.old = append(r.old, s)
	}
}

func (r *run) audit(at int, s *session) []audit.Row {
	log := r.log(at, s)
	for _, found := range audit.Check(r.rec, s.key, log) {
		r.troublef("%s", found)
	}
	return log
}

func (r *run) window(s *session, log []audit.Row) {
	var w audit.Window
	a := r.client(0, 0).ask(http.MethodPost, path(s, "assemble"), object("tokenBudget", number(budget)))
	if !a.ok() || json.Unmarshal(a.body, &w) != nil {
		r.troublef("window of %s: %s", s.key, a)
		return
	}
	broken := s.invalid(w)
	if s.kind != steps { // whose window is not the end of its log
		broken = append(broken, audit.CheckWindowOf(w, log)...)
	}
	for _, found := range broken {
		r.troublef("%s: %s", s.key, found)
	}
}

// invalid is what is wrong with a window. One that was rewound to a call ends
// with it, as with one that is still open.
func (s *session) invalid(w audit.Window) []string {
	return slices.DeleteFunc(audit.CheckWindow(w, budget), func(found string) bool {
		return s.kind == steps && strings.Contains(found, "ends with the calls")
	})
}

// seenBy waits until every watcher has seen the log, and compares.
func (r *run) seenBy(s *session, log []audit.Row) {
	if s.watched != nil {
		r.await("the stream of "+s.key, func() bool { return s.watched.so(len(log)) != nil })
		if found := held("the stream", s.key, log, s.watched.so(len(log))); found != "" {
			r.troublef("%s", found)
		}
		s.erasing.Store(true) // its watcher may go
	}
	for _, f := range r.feeds {
		r.await(f.name()+" of "+s.key, func() bool { return f.of(s.key, len(log)) != nil })
		if found := held(f.name(), s.key, log, f.of(s.key, len(log))); found != "" {
			r.troublef("%s", found)
		}
	}
}

// resume reads the stream and the feed again from somewhere.
func (r *run) resume(s *session, log []audit.Row) {
	if len(log) == 0 {
		return
	}
	r.checked.resumed++
	from := r.rand.IntN(len(log))
	var again []seen
	c, err := client.New(one(r.nodes, r.rand).url, "")
	if err != nil {
		r.troublef("%v", err)
		return
	}
	defer c.Close()
	r.await("the stream of "+s.key+" from the middle", func() bool {
		after := int64(from + len(again))
		_ = c.Stream(r.t.Context(), s.key, after, func(e client.Event) error {
			again = append(again, seen{seq: e.Seq, sum: sumOf(e.Type, e.Epoch, e.Message, e.Data)})
			if len(again) >= len(log)-from {
				return errEnough
			}
			return nil
		})
		return len(again) >= len(log)-from
	})
	if found := held("the stream from the middle", s.key, log[from:], again); found != "" {
		r.troublef("%s", found)
	}
	r.resumeFeed()
}

var errEnough = fmt.Errorf("enough")

// resumeFeed goes back to a place of the feed and reads some pages on. What was
// erased meanwhile is not there any more.
func (r *run) resumeFeed() {
	f := r.feeds[r.rand.IntN(len(r.feeds))]
	f.mu.Lock()
	order := slices.Clip(f.order)
	f.mu.Unlock()
	at := -1
	for range 200 {
		if i := r.rand.IntN(len(order)); order[i].cursor != "" {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	gone := r.gone()
	var rows []client.Event
	r.await("a page of the feed", func() bool {
		var err error
		rows, _, err = r.page(one(r.nodes, r.rand).url, order[at].cursor, 100)
		return err == nil
	})
	next := at + 1
	for _, e := range rows {
		if gone[e.SessionKey] {
			continue
		}
		for next < len(order) && gone[order[next].key] {
			next++
		}
		if next == len(order) {
			return
		}
		if want := order[next]; want.key != e.SessionKey || want.seq != e.Seq {
			r.troublef("%s read again shows %s %d where it showed %s %d", f.name(), e.SessionKey, e.Seq, want.key, want.seq)
			return
		}
		next++
	}
}

// short tells a list of findings in one line each, the first ones.
func short(found []string) string { return strings.Join(found[:min(len(found), 12)], "\n  ") }
