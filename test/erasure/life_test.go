package erasure_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/engined/engined/internal/compact/summarize"
)

var hello = object{"role": "user", "content": "hello"}

func TestErasedSessionOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ingest := func(sessionID string) answer {
		body := object{"message": hello}
		if sessionID != "" {
			body["sessionId"] = sessionID
		}
		return s.post("k", "ingest", body)
	}
	if a := ask(t, s.node, http.MethodDelete, path("k"), nil); a.status != 404 || a.slug() != "unknown-session" {
		t.Errorf("erase of an unknown session: %d %s", a.status, a.body)
	}
	for range 3 {
		if a := ingest("one"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	var receipt struct {
		Erased   int
		ErasedAt *time.Time
		Counts   map[string]int64
		Complete bool
	}
	ask(t, s.node, http.MethodDelete, path("k"), nil).into(t, &receipt)
	if receipt.Erased != 1 || !receipt.Complete || receipt.ErasedAt == nil || receipt.Counts["events"] != 3 || receipt.Counts["sessions"] != 1 {
		t.Errorf("receipt %+v", receipt)
	}

	// Reads answer as for a key that never was, on every node.
	for _, read := range []string{"", "/events", "/events/stream", "/summaries"} {
		if a := ask(t, s.other, http.MethodGet, path("k")+read, nil); a.status != 404 || a.slug() != "unknown-session" {
			t.Errorf("GET %s: %d %s", read, a.status, a.body)
		}
	}
	if a := ask(t, s.node, http.MethodDelete, path("k"), nil); a.status != 404 {
		t.Errorf("erased again: %d %s", a.status, a.body)
	}
	for _, name := range []string{"compact", "maintain"} {
		if a := s.post("k", name, object{}); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, name := range []string{"", "one"} {
		for call, body := range map[string]object{
			"ingest": {"message": hello}, "ingest-batch": {"messages": []any{hello}},
			"commit-turn":     {"advancementKey": "turn", "messages": []any{hello}},
			"after-turn":      {"messages": []any{hello}, "prePromptMessageCount": 0},
			"lease":           {"owner": "o", "ttlMs": 1000},
			"reset":           {},
			"rewind":          {"toSeq": 1},
			"undo-compaction": {},
		} {
			if name != "" {
				body["sessionId"] = name
			}
			if a := s.post("k", call, body); a.status != 409 || a.slug() != "session-erased" {
				t.Errorf("%s naming %q: %d %s", call, name, a.status, a.body)
			}
		}
	}
	late := s.post("k", "bootstrap", object{"sessionId": "one", "messages": []any{hello}})
	if late.status != 409 || late.slug() != "session-erased" {
		t.Errorf("bootstrap of the erased life: %d %s", late.status, late.body)
	}

	// A host session that nobody knew opens a new life at seq 1.
	var stored struct{ Seq, Head, Epoch int64 }
	ingest("two").into(t, &stored)
	if stored.Seq != 1 || stored.Head != 1 || stored.Epoch != 1 {
		t.Errorf("the new life: %+v", stored)
	}
	ingest("").into(t, &stored)
	if stored.Seq != 2 {
		t.Errorf("a write that names no host session: %+v", stored)
	}
	if a := ingest("one"); a.status != 409 {
		t.Errorf("late write beside the new life: %d %s", a.status, a.body)
	}
	if a := s.post("k", "reset", object{"sessionId": "one"}); a.status != 409 || a.slug() != "session-erased" {
		t.Errorf("late reset beside the new life: %d %s", a.status, a.body)
	}
	var window struct {
		Messages []json.RawMessage
	}
	s.post("k", "assemble", object{"tokenBudget": 1000}).into(t, &window)
	if len(window.Messages) != 2 {
		t.Errorf("window of the new life: %s", window.Messages)
	}
}

func TestEraseByPrefixOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, key := range []string{"u:1:a", "u:1:b", "u:2"} {
		s.post(key, "ingest", object{"message": hello})
	}
	for _, query := range []string{"", "?keyPrefix=", "?prefix=u"} {
		if a := ask(t, s.node, http.MethodDelete, "/v1/sessions"+query, nil); a.status != 422 {
			t.Errorf("DELETE %q: %d %s", query, a.status, a.body)
		}
	}
	for _, want := range []int64{2, 0} {
		var receipt struct {
			Erased int64
			Counts map[string]int64
		}
		ask(t, s.node, http.MethodDelete, "/v1/sessions?keyPrefix=u:1:", nil).into(t, &receipt)
		if receipt.Erased != want || receipt.Counts["events"] != want {
			t.Errorf("receipt %+v, want %d", receipt, want)
		}
	}
	if a := ask(t, s.node, http.MethodGet, path("u:2"), nil); a.status != 200 {
		t.Errorf("the other: %d %s", a.status, a.body)
	}
}

func TestLeaseOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	type lease struct {
		Token     string
		ExpiresAt time.Time
		Renewed   bool
		Head      int64
	}
	take := func(owner string, ttl any) answer {
		return s.post("k", "lease", object{"owner": owner, "ttlMs": ttl})
	}
	for name, body := range map[string]object{
		"no owner": {"ttlMs": 1000}, "no ttl": {"owner": "a"}, "zero": {"owner": "a", "ttlMs": 0}, "negative": {"owner": "a", "ttlMs": -1},
		"too long": {"owner": "a", "ttlMs": 24*3600*1000 + 1}, "a text": {"owner": "a", "ttlMs": "1000"}, "a fraction": {"owner": "a", "ttlMs": 1.5},
		"huge": {"owner": "a", "ttlMs": 1e30}, "a NUL": {"owner": "a\x00", "ttlMs": 1000},
	} {
		if a := s.post("k", "lease", body); a.status != 422 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	var first, again, second lease
	take("a", 60_000).into(t, &first)
	take("a", 60_000).into(t, &again)
	if again.Token != first.Token || !again.Renewed || first.Renewed {
		t.Errorf("%+v, renewed %+v", first, again)
	}
	held := take("b", 60_000)
	var problem struct {
		ExpiresAt time.Time
	}
	if err := json.Unmarshal(held.body, &problem); err != nil || held.status != 409 || held.slug() != "lease-held" || !problem.ExpiresAt.Equal(again.ExpiresAt) {
		t.Errorf("another owner: %d %s", held.status, held.body)
	}
	// Writes of both, and of a second writer without a lease, which it never stops.
	if a := s.post("k", "ingest", object{"message": hello}); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for token, want := range map[string]int{first.Token: 200, "": 200, "0000000000000001": 409} {
		for call, body := range map[string]object{
			"ingest": {"message": hello}, "ingest-batch": {"messages": []any{hello}}, "reset": {}, "rewind": {"toSeq": 1},
			"after-turn": {"messages": []any{object{"role": "user", "content": "under " + token}}, "prePromptMessageCount": 0},
		} {
			if token != "" {
				body["leaseToken"] = token
			}
			if a := s.post("k", call, body); a.status != want || want == 409 && a.slug() != "lease-stale" {
				t.Errorf("%s under %q: %d %s", call, token, a.status, a.body)
			}
		}
	}
	// What is known already is answered as known, lease or not: a retry is no write.
	retry := object{"message": hello, "idempotencyKey": "retry", "leaseToken": first.Token}
	if a := s.post("k", "ingest", retry); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	del := func(query string) answer { return ask(t, s.node, http.MethodDelete, path("k")+"/lease"+query, nil) }
	for query, want := range map[string]int{"": 422, "?token=x": 409} {
		if a := del(query); a.status != want {
			t.Errorf("DELETE lease%s: %d %s", query, a.status, a.body)
		}
	}
	if a := del("?token=" + first.Token); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.post("k", "ingest", retry); a.status != 200 {
		t.Errorf("retry after the lease: %d %s", a.status, a.body)
	}
	take("b", 60_000).into(t, &second)
	if second.Token <= first.Token {
		t.Errorf("%s after %s", second.Token, first.Token)
	}
}

// held is a summarizer that waits to be let go.
type held struct {
	summarize.Extractive
	began, release chan struct{}
}

func (h held) Summarize(ctx context.Context, r summarize.Request) (summarize.Result, error) {
	select {
	case h.began <- struct{}{}:
	default:
	}
	select {
	case <-h.release:
	case <-ctx.Done():
		return summarize.Result{}, ctx.Err()
	}
	return h.Extractive.Summarize(ctx, r)
}

// A compaction that was planned on the erased life must not commit into the
// new one, although that is in the same epoch.
func TestWorkerOfTheErasedLifeIsRefused(t *testing.T) {
	t.Parallel()
	h := held{began: make(chan struct{}, 1), release: make(chan struct{})}
	s := start(t, h)
	turn := func(name, marker string) {
		body := object{"sessionId": name, "messages": messages(8, marker), "prePromptMessageCount": 0, "tokenBudget": 1500}
		if a := s.post("k", "after-turn", body); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	turn("one", "the old life")
	<-h.began
	if a := ask(t, s.node, http.MethodDelete, path("k"), nil); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	turn("two", "the new life")
	close(h.release)
	s.await("the new life's own compaction", func() bool {
		var row struct{ Epoch int64 }
		ask(t, s.node, http.MethodGet, path("k"), nil).into(t, &row)
		return row.Epoch > 1
	})
	for table, text := range dump(t, s.db) {
		if holds(map[string][]byte{table: text}, "the old life") {
			t.Errorf("the old life is in %s", table)
		}
	}
}
