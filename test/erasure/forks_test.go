package erasure_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/engined/engined/internal/compact/summarize"
)

const quoted = "it was said: "

// quoting repeats the beginning of what it summarizes.
type quoting struct{ summarize.Extractive }

func (quoting) Summarize(_ context.Context, r summarize.Request) (summarize.Result, error) {
	for _, c := range r.Children {
		return summarize.Result{Text: c.Text}, nil
	}
	return summarize.Result{Text: quoted + r.Lines[0].Text[:min(60, len(r.Lines[0].Text))]}, nil
}

// TestNothingOfAnErasedSessionIsLeftInItsForks: neither what they inherited nor
// what they made of it, nor the name of whom they had it from.
func TestNothingOfAnErasedSessionIsLeftInItsForks(t *testing.T) {
	t.Parallel()
	s := start(t, quoting{})
	key := markers["key"]
	must := func(a answer) {
		t.Helper()
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	must(s.post(key, "ingest-batch", object{"messages": messages(12, markers["small"])}))
	must(s.post(key, "fork", object{"newSessionKey": "fork"}))
	must(s.post("fork", "ingest-batch", object{"messages": messages(12, "the fork's own")}))
	must(s.post("fork", "fork", object{"newSessionKey": "fork of the fork"}))
	must(s.post(key, "subagents", object{"childSessionKey": "isolated"}))
	must(s.post(key, "subagents", object{"childSessionKey": "forked", "contextMode": "fork"}))
	for _, fork := range []string{"fork", "fork of the fork"} {
		must(s.post(fork, "compact", object{"force": true, "tokenBudget": 3000}))
		must(s.post(fork, "ingest", object{"message": object{"role": "user", "content": "since then"}}))
	}
	if found := dump(t, s.db); !holds(found, quoted+"question 0 about "+markers["small"]) || !holds(found, `"parentSessionKey":"`+key) {
		t.Fatal("no fork holds what is looked for: the test proves nothing")
	}
	must(ask(t, s.node, http.MethodDelete, path(key), nil))
	for table, text := range dump(t, s.db) {
		for _, name := range []string{"key", "small"} {
			if holds(map[string][]byte{table: text}, markers[name]) {
				t.Errorf("%s marker left in table %s", name, table)
			}
		}
	}
	for _, fork := range []string{"fork", "fork of the fork"} {
		a := ask(t, s.node, http.MethodPost, path(fork)+"/assemble", object{"tokenBudget": 100_000})
		if !strings.Contains(string(a.body), "the fork's own") || !strings.Contains(string(a.body), "since then") {
			t.Errorf("%s lost its own messages: %s", fork, a.body)
		}
	}
	for _, child := range []string{"isolated", "forked"} {
		must(s.post(child, "ingest", object{"message": object{"role": "user", "content": "goes on"}}))
		must(s.post(child, "subagents/"+child+"/ended", object{"reason": "completed"}))
	}
}
