package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/engined/engined/test/faults/audit"
	"github.com/engined/engined/test/faults/proc"
)

// tryTime is how long a client waits before it asks another node.
const tryTime = 3 * time.Second

// gateway is one gateway; its requests come one after the other.
type gateway struct {
	run  *run
	name string
	rand *rand.Rand
	// clock is what its clock shows more than there is, in milliseconds.
	clock int64
}

type answer struct {
	status     int
	retryAfter string
	slug       string
	body       []byte
	err        error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("status %d: %.300s", a.status, a.body)
}

// ok tells that the call was done.
func (a answer) ok() bool { return a.err == nil && a.status == http.StatusOK }

// away tells that the answer says nothing of what was asked.
func (a answer) away() bool {
	return a.err != nil || a.status == http.StatusServiceUnavailable && a.retryAfter != "" ||
		a.status == http.StatusTooManyRequests && a.retryAfter != ""
}

func (r *run) call(method, base, path string, body []byte) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.http.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	a.status, a.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	a.body, a.err = io.ReadAll(res.Body)
	if a.err == nil && a.status/100 != 2 {
		var p struct{ Type string }
		_ = json.Unmarshal(a.body, &p)
		a.slug = p.Type[strings.LastIndex(p.Type, "/")+1:]
	}
	return a
}

func path(s *session, call string) string {
	p := "/v1/sessions/" + url.PathEscape(s.key)
	if call != "" {
		p += "/" + call
	}
	return p
}

// ask calls until there is an answer that says something, at one node after
// the other.
func (c *gateway) ask(method, path string, body []byte) answer {
	r := c.run
	at := c.rand.IntN(len(r.nodes))
	deadline := time.Now().Add(proc.Patience)
	var a answer
	for try := 0; time.Now().Before(deadline); try++ {
		if try > 0 {
			r.again.Add(1)
			<-time.After(30 * time.Millisecond) // the pace of the retries
		}
		if a = r.call(method, r.nodes[(at+try)%len(r.nodes)].url, path, body); !a.away() {
			if a.status/100 == 5 {
				r.troublef("%s %s answers %s", method, path, a)
			}
			return a
		}
	}
	r.troublef("%s %s was never answered: %s", method, path, a)
	return a
}

// once calls one time: what cannot be told from its own repetition.
func (c *gateway) once(method, path string, body []byte) answer {
	return c.run.call(method, one(c.run.nodes, c.rand).url, path, body)
}

// write makes a write known by its messages until it is answered. refusals are
// the answers by which the session may say no.
func (c *gateway) write(s *session, k audit.Kind, ms [][]byte, expected int64, body []byte, refusals ...string) (answer, bool) {
	r := c.run
	w := r.rec.Begin(s.key, k, ms...)
	o := op{kind: opWrite, write: w, expected: expected, call: r.now()}
	a := c.ask(http.MethodPost, path(s, string(k)), body)
	o.ret = r.now()
	switch {
	case a.ok():
		var res struct {
			Seq, Head, Epoch int64
			Seqs             []int64
			Compaction       string
		}
		if err := json.Unmarshal(a.body, &res); err != nil {
			r.troublef("%s answered %.200s: %v", k, a.body, err)
		}
		seqs := res.Seqs
		if k == audit.Ingest {
			seqs = []int64{res.Seq}
		}
		if k == audit.Transcript {
			seqs = nil
		}
		w.Ack(seqs...)
		r.acked.Add(1)
		if res.Compaction != "" && res.Compaction != "none" {
			r.rec.Owes(s.key, res.Epoch)
		}
		s.record(o)
		return a, true
	case a.away(), a.status/100 == 5:
		return a, false // said already; whether it is stored, nobody knows
	}
	w.Refuse()
	var p struct{ Head int64 }
	_ = json.Unmarshal(a.body, &p)
	known := a.slug == "session-erased" && s.erasing.Load()
	for _, slug := range refusals {
		known = known || a.slug == slug
	}
	if !known {
		r.troublef("%s of %s is refused: %s", k, s.key, a)
	}
	r.refused.Add(1)
	if a.slug == "stale-head" {
		o.kind, o.head = opStale, p.Head
		s.record(o)
	}
	return a, false
}

// say is a message, unlike any other, in bytes that are no canonical JSON.
func (c *gateway) say(s *session, role string) []byte {
	words := strings.Repeat(fmt.Sprintf("the build of module %d took 1.50e1 s \\u00e9 <b>&amp;</b> ", c.rand.IntN(100)), 2+c.rand.IntN(4))
	return fmt.Appendf(nil, `{ "timestamp":%d,"content":"%s %s %d: %s" ,"role":%q}`,
		time.Now().UnixMilli()+c.clock, s.mark, c.name, s.made.Add(1), words, role)
}

// turn is a question, a tool call, its result and an answer.
func (c *gateway) turn(s *session) [][]byte {
	id := fmt.Sprintf("call-%s-%d", c.name, s.made.Add(1))
	return [][]byte{
		c.say(s, "user"),
		fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":"{\"path\":\"/srv/%s.go\"}"}}]}`, id, s.mark),
		fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":"package main // %s"}`, id, strings.Repeat(s.mark+" ", 8)),
		c.say(s, "assistant"),
	}
}

// object writes JSON from names and raw values, whose bytes stay as they are.
func object(pairs ...any) []byte {
	out := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `%q:%s`, pairs[i], pairs[i+1])
	}
	return append(out, '}')
}

func array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte(","))...), ']')
}

func quote(s string) []byte { return fmt.Appendf(nil, "%q", s) }
func number(n int64) []byte { return fmt.Append(nil, n) }
func extend(b []byte, pairs ...any) []byte {
	if len(pairs) == 0 {
		return b
	}
	return append(append(b[:len(b)-1], ','), object(pairs...)[1:]...)
}
