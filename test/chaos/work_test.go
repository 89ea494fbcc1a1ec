package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/engined/engined/test/faults/audit"
)

// work is what a client does until ctx ends: a call on one of the sessions.
func (c *gateway) work(ctx context.Context) {
	for ctx.Err() == nil {
		s := one(c.run.active(), c.rand)
		switch s.kind {
		case recorded:
			if c.rand.IntN(2) == 0 {
				c.replay(s)
				continue
			}
		case mirrored:
			if c.rand.IntN(3) > 0 {
				c.sync(s)
			} else {
				c.look(s)
			}
			continue
		case leased:
			c.lease(s)
			continue
		case steps:
			if c.rand.IntN(6) == 0 {
				c.step(s)
				continue
			}
		}
		c.speak(s)
	}
}

func (c *gateway) speak(s *session, more ...any) {
	var refusals []string
	if len(more) > 0 {
		refusals = append(refusals, "lease-stale")
	}
	switch n := c.rand.IntN(16); {
	case n < 3:
		c.ingest(s, -1, refusals, more...)
	case n < 5: // two gateways that believe they are alone
		s.mu.Lock()
		expected := s.head
		s.mu.Unlock()
		c.ingest(s, expected, append(refusals, "stale-head"), more...)
	case n < 7:
		ms := append(c.turn(s), c.turn(s)...)
		keys := make([]string, len(ms))
		for i := range keys {
			keys[i] = fmt.Sprintf("%s-%d", c.name, s.made.Add(1))
		}
		names, _ := json.Marshal(keys)
		c.write(s, audit.Batch, ms, -1, extend(object("messages", array(ms), "idempotencyKeys", names), more...), refusals...)
	case n < 10:
		c.commit(s, c.turn(s), refusals, more...)
	case n < 12 && !s.doomed:
		ms := c.turn(s)
		c.write(s, audit.After, ms, -1, extend(object(
			"sessionId", quote(c.name+" "+s.mark), "prePromptMessageCount", number(1), "tokenBudget", number(budget),
			"messages", array(append([][]byte{[]byte(`{"role":"user","content":"known"}`)}, ms...)),
		), more...), refusals...)
	case n < 14:
		c.look(s)
	case n < 15:
		c.read(s)
	default:
		c.compact(s)
	}
}

func (c *gateway) ingest(s *session, expected int64, refusals []string, more ...any) {
	m := c.say(s, "user")
	body := extend(object("message", m, "idempotencyKey", quote(fmt.Sprintf("%s-%d", c.name, s.made.Add(1)))), more...)
	if expected >= 0 {
		body = extend(body, "expectedHead", number(expected))
	}
	a, _ := c.write(s, audit.Ingest, [][]byte{m}, expected, body, refusals...)
	var res struct{ Head int64 }
	if json.Unmarshal(a.body, &res) == nil && res.Head > 0 {
		s.mu.Lock()
		s.head = res.Head
		s.mu.Unlock()
	}
}

func (c *gateway) commit(s *session, ms [][]byte, refusals []string, more ...any) bool {
	key := fmt.Sprintf("%s-%d", c.name, s.made.Add(1))
	_, ok := c.write(s, audit.Commit, ms, -1, extend(object("advancementKey", quote(key), "messages", array(ms), "tokenBudget", number(budget)), more...), refusals...)
	return ok
}

// look asks for a window, as the turn loop does before every model call.
func (c *gateway) look(s *session) {
	o := op{kind: opRead, call: c.run.now()}
	a := c.ask(http.MethodPost, path(s, "assemble"), object("tokenBudget", number(budget)))
	o.ret = c.run.now()
	if s.erasing.Load() || a.away() {
		return
	}
	var w audit.Window
	if !a.ok() || json.Unmarshal(a.body, &w) != nil {
		c.run.troublef("window of %s: %s", s.key, a)
		return
	}
	for _, found := range s.invalid(w) {
		c.run.troublef("%s: %s", s.key, found)
	}
	o.head, o.epoch = w.Head, w.Epoch
	s.record(o)
}

// read asks for the session's state.
func (c *gateway) read(s *session) {
	o := op{kind: opRead, call: c.run.now()}
	a := c.ask(http.MethodGet, path(s, ""), nil)
	o.ret = c.run.now()
	var row struct{ Head, Epoch int64 }
	switch {
	case a.status == http.StatusNotFound || s.erasing.Load() || a.away():
		return // nobody has written to it yet
	case !a.ok() || json.Unmarshal(a.body, &row) != nil:
		c.run.troublef("state of %s: %s", s.key, a)
		return
	}
	o.head, o.epoch = row.Head, row.Epoch
	s.record(o)
}

func (c *gateway) compact(s *session) {
	a := c.ask(http.MethodPost, path(s, "compact"), object("force", []byte("true"), "tokenBudget", number(budget)))
	if !a.ok() && !a.away() && !s.erasing.Load() && a.status/100 != 5 {
		c.run.troublef("compact %s: %s", s.key, a)
	}
}

// step moves the session's window. An answer that is lost is not asked for
// again: a second reset is another one.
func (c *gateway) step(s *session) {
	call, body := "reset", object("reason", quote(s.mark))
	switch c.rand.IntN(3) {
	case 0:
		s.mu.Lock()
		head := s.head
		s.mu.Unlock()
		if head == 0 {
			return
		}
		call, body = "rewind", object("toSeq", number(1+c.rand.Int64N(head)))
	case 1:
		call, body = "undo-compaction", []byte("{}")
	}
	o := op{kind: opStep, call: c.run.now()}
	a := c.once(http.MethodPost, path(s, call), body)
	o.ret = c.run.now()
	var res struct{ Head, Epoch int64 }
	switch {
	case a.away(), s.erasing.Load():
	case a.ok() && json.Unmarshal(a.body, &res) == nil:
		o.head, o.epoch = res.Head, res.Epoch
		s.record(o)
		c.run.stepped.Add(1)
	case a.slug == "nothing-to-undo", a.slug == "epoch-conflict", a.status == http.StatusNotFound:
	default:
		c.run.troublef("%s of %s: %s", call, s.key, a)
	}
}

// lease takes the session's lease and writes under it, at times too late.
func (c *gateway) lease(s *session) {
	a := c.ask(http.MethodPost, path(s, "lease"), object("owner", quote(c.name+s.mark), "ttlMs", number(int64(100+c.rand.IntN(600)))))
	switch {
	case a.slug == "lease-held", a.away(), s.erasing.Load():
		c.look(s)
		return
	case !a.ok():
		c.run.troublef("lease of %s: %s", s.key, a)
		return
	}
	var l struct{ Token string }
	if err := json.Unmarshal(a.body, &l); err != nil {
		c.run.troublef("lease of %s: %v", s.key, err)
		return
	}
	c.run.leases.Add(1)
	for range 1 + c.rand.IntN(3) {
		if c.rand.IntN(4) == 0 {
			<-time.After(time.Duration(c.rand.IntN(400)) * time.Millisecond) // a gateway that pauses
		}
		c.speak(s, "leaseToken", quote(l.Token))
	}
}

// replay says the next turn of a recording.
func (c *gateway) replay(s *session) {
	if !s.busy.TryLock() {
		return
	}
	defer s.busy.Unlock()
	if len(s.script) == 0 {
		c.look(s)
		return
	}
	var ms [][]byte
	for _, m := range s.script[0] {
		ms = append(ms, s.stamped(m))
	}
	s.script = s.script[1:]
	if c.commit(s, ms, nil) {
		c.run.replayed.Add(1)
	}
}

// sync sends a page of the host's transcript, at times with what it sent
// before.
func (c *gateway) sync(s *session) {
	if !s.busy.TryLock() {
		return
	}
	defer s.busy.Unlock()
	from := s.sent
	if c.rand.IntN(3) == 0 {
		from = c.rand.IntN(from + 1)
	}
	var ms [][]byte
	for range 1 + c.rand.IntN(2) {
		for _, m := range c.turn(s) {
			parent := "null"
			if n := len(s.entries); n > 0 {
				parent = fmt.Sprintf(`"e%d"`, n-1)
			}
			ms = append(ms, m)
			s.entries = append(s.entries, fmt.Sprintf(`{"type":"message","id":"e%d","parentId":%s,"message":%s}`, len(s.entries), parent, m))
		}
	}
	var page [][]byte
	for _, e := range s.entries[from:] {
		page = append(page, []byte(e))
	}
	a, ok := c.write(s, audit.Transcript, ms, -1, object(
		"sessionId", quote("host "+s.mark), "gatewayId", quote("g "+s.mark), "cursor", quote(fmt.Sprint(len(s.entries))), "entries", array(page)))
	if !ok {
		return
	}
	s.sent = len(s.entries)
	var res struct{ Stored, Duplicates int }
	if json.Unmarshal(a.body, &res) != nil || res.Stored+res.Duplicates != len(page) {
		c.run.troublef("a page of %d entries: %s", len(page), a)
	}
}

// branch makes a session under another one and writes to it: a fork, or a
// sub-agent that ends or is rolled back.
func (c *gateway) branch(parent *session, child *session) bool {
	mode := c.rand.IntN(4)
	if mode == 0 {
		a := c.ask(http.MethodPost, path(parent, "fork"), object("newSessionKey", quote(child.key)))
		if !a.ok() && a.slug != "session-exists" { // a retry finds what the first try made
			c.run.troublef("fork of %s: %s", parent.key, a)
			return false
		}
	} else {
		context := []string{"isolated", "fork"}[mode%2]
		a := c.ask(http.MethodPost, path(parent, "subagents"), object("childSessionKey", quote(child.key), "contextMode", quote(context), "ttlMs", number(600_000)))
		if !a.ok() {
			c.run.troublef("sub-agent of %s: %s", parent.key, a)
			return false
		}
	}
	at := "subagents/" + url.PathEscape(child.key)
	if mode == 3 { // it never wrote: nothing stays
		if a := c.ask(http.MethodPost, path(parent, at+"/rollback"), []byte("{}")); !a.ok() {
			c.run.troublef("rollback of %s: %s", child.key, a)
		}
		if a := c.ask(http.MethodGet, path(child, ""), nil); a.status != http.StatusNotFound {
			c.run.troublef("%s was rolled back and is there: %s", child.key, a)
		}
		return false
	}
	for range 1 + c.rand.IntN(3) {
		c.commit(child, c.turn(child), nil)
	}
	c.look(child)
	if mode > 0 {
		if a := c.ask(http.MethodPost, path(parent, at+"/ended"), object("reason", quote("completed"))); !a.ok() {
			c.run.troublef("end of %s: %s", child.key, a)
		}
	}
	return true
}
