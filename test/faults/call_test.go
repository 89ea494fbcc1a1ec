package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"

	"github.com/engined/engined/test/faults/audit"
)

// answer is what came of a call.
type answer struct {
	status     int
	retryAfter string
	body       []byte
	// reused: it went over a connection that had served another call.
	reused bool
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("status %d, retry after %q: %.200s", a.status, a.retryAfter, a.body)
}

func (l *load) post(ctx context.Context, base, session, call string, body []byte) answer {
	reused := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	target := base + "/v1/sessions/" + url.PathEscape(session) + "/" + call
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	a := do(l.http, req)
	a.reused = reused
	return a
}

func (l *load) get(ctx context.Context, base, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return err
	}
	a := do(l.http, req)
	if a.err != nil || a.status != http.StatusOK {
		return fmt.Errorf("%s: %s", path, a)
	}
	return json.Unmarshal(a.body, into)
}

func do(c *http.Client, req *http.Request) (a answer) {
	res, err := c.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	a.status, a.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	a.body, a.err = io.ReadAll(res.Body)
	return a
}

// sessionRow is the part of a session that tests look at.
type sessionRow struct {
	Head, Epoch, Debt, Tokens int64
	Attempts                  []struct {
		Epoch                  int64
		Worker, Outcome, Error string
	}
}

func (l *load) session(t *testing.T, base, key string) (s sessionRow) {
	t.Helper()
	if err := l.get(t.Context(), base, "/v1/sessions/"+url.PathEscape(key), &s); err != nil {
		t.Fatalf("session %s: %v", key, err)
	}
	return s
}

// log reads a session's whole log.
func (l *load) log(t *testing.T, base, key string) []audit.Row {
	t.Helper()
	var out []audit.Row
	for after := int64(0); ; {
		var page struct {
			Events []struct {
				Seq           int64
				Type          string
				Epoch         int64
				Message, Data json.RawMessage
			}
			Next *int64
		}
		if err := l.get(t.Context(), base, fmt.Sprintf("/v1/sessions/%s/events?limit=500&after=%d", url.PathEscape(key), after), &page); err != nil {
			t.Fatalf("log of %s: %v", key, err)
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

// settle ends every session's work with a turn, for only turns make a session
// owe, and waits until all that is owed is paid. A worker must run.
func (l *load) settle(t *testing.T, base string) {
	t.Helper()
	g := &gateway{load: l, id: 1_000_000, rand: newRand()}
	for _, key := range l.rec.Sessions() {
		g.commit(key)
	}
	l.paid(t, base)
}

// paid waits until every session has got the compactions that it was told to
// owe, and needs no other.
func (l *load) paid(t *testing.T, base string) {
	t.Helper()
	for _, key := range l.rec.Sessions() {
		var s sessionRow
		await(t, "the compactions that "+key+" owes", func() bool {
			s = l.session(t, base, key)
			return s.Debt == 0 && s.Epoch > l.rec.Owed(key)
		})
		s = l.session(t, base, key)   // its debt is read after the rest of it
		if s.Tokens > budget*85/100 { // the threshold, unless set otherwise
			t.Errorf("%s owes nothing with %d tokens in a budget of %d", key, s.Tokens, budget)
		}
		t.Logf("%s: head %d, epoch %d, owed in epoch %d", key, s.Head, s.Epoch, l.rec.Owed(key))
	}
}

// audit holds every session's log and window against what the clients know.
func (l *load) audit(t *testing.T, base string) {
	t.Helper()
	for _, key := range l.rec.Sessions() {
		rows := l.log(t, base, key)
		for _, s := range audit.Check(l.rec, key, rows) {
			t.Error(s)
		}
		var w audit.Window
		a := l.post(t.Context(), base, key, "assemble", object("tokenBudget", fmt.Append(nil, budget)))
		if a.err != nil || a.status != http.StatusOK || json.Unmarshal(a.body, &w) != nil {
			t.Errorf("window of %s: %s", key, a)
			continue
		}
		for _, s := range append(audit.CheckWindow(w, budget), audit.CheckWindowOf(w, rows)...) {
			t.Errorf("%s: %s", key, s)
		}
	}
}
