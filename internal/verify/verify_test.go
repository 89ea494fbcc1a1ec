package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/verify"
)

const tenant = "t"

func on(key string) contextengine.Session {
	return contextengine.Session{Tenant: tenant, SessionKey: key, SessionID: "host", GatewayID: "gw"}
}

func turns(n int) []json.RawMessage {
	var out []json.RawMessage
	for i := range n {
		text := fmt.Sprintf("%d: %s", i, strings.Repeat("what about the release and its notes? ", 30))
		id := fmt.Sprint("call", i)
		out = append(out,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text)),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"toolCall","id":%q,"name":"read","arguments":{"n":1.0}}]}`, id)),
			json.RawMessage(fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"content":[{"type":"text","text":%q}]}`, id, text)),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, text)))
	}
	return out
}

// life does to a session what can be done to one, and forks it.
func life(t *testing.T, e *engine.Lossless, key string) {
	t.Helper()
	ctx, s := t.Context(), on(key)
	budget := 4000
	try := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	write := func() {
		_, err := e.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: turns(8)})
		try("ingest", err)
	}
	compact := func() {
		res, err := e.Compact(ctx, contextengine.CompactParams{Session: s, Force: true, TokenBudget: &budget})
		try("compact", err)
		if !res.Compacted {
			t.Fatalf("not compacted: %s", res.Reason)
		}
	}
	_, err := e.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "turn", Messages: turns(2), TokenBudget: &budget})
	try("commit", err)
	_, err = e.Ingest(ctx, contextengine.IngestParams{
		Session: s, IsHeartbeat: true, IdempotencyKey: "key", Message: json.RawMessage(`{"role":"user","content":"` + strings.Repeat("large ", 60_000) + `"}`),
	})
	try("ingest", err)
	write()
	compact()
	write()
	compact()
	_, err = e.UndoCompaction(ctx, s, nil)
	try("undo", err)
	write()
	rewound, err := e.Rewind(ctx, s, 20)
	try("rewind", err)
	write()
	_, err = e.Rewind(ctx, s, rewound.Head-3) // back to the branch that was left
	try("branch switch", err)
	write()
	compact()
	keep := int64(30)
	_, err = e.Reset(ctx, s, &keep, "some of it")
	try("reset", err)
	write()
	_, err = e.Fork(ctx, s, key+" fork", nil)
	try("fork", err)
	_, err = e.Reset(ctx, s, nil, "")
	try("reset", err)
	write()
	compact()
	s = on(key + " fork")
	write()
	compact()
	write()
}

func differences(t *testing.T, s *store.Store) []verify.Difference {
	t.Helper()
	var out []verify.Difference
	p, err := verify.All(t.Context(), s, func(d verify.Difference) error {
		out = append(out, d)
		return nil
	}, func(verify.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if p.Sessions == 0 || p.Events == 0 || p.Differences != int64(len(out)) {
		t.Errorf("progress %+v", p)
	}
	return out
}

func TestVerifyFindsWhatWasChangedAndNothingElse(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e := engine.NewLossless(engine.Config{Log: s})
	t.Cleanup(func() { _ = e.Dispose(context.Background()) })
	life(t, e, "k")
	if _, err := s.Erase(t.Context(), tenant, "nobody"); err == nil {
		t.Fatal("erased nobody")
	}
	if found := differences(t, s); len(found) > 0 {
		t.Fatalf("differences in what nobody changed: %+v", found)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	const mine = ` tenant_id = 't' AND sid = (SELECT sid FROM sessions WHERE session_key = 'k')`
	for _, c := range []struct{ name, what, sql string }{
		{"a head too high", "head", `UPDATE sessions SET head = head + 1 WHERE` + mine},
		{"a head too low", "head", `UPDATE sessions SET head = head - 1 WHERE` + mine},
		{"a host head beyond", "head", `UPDATE sessions SET host_head = head + 1 WHERE` + mine},
		{"an epoch", "epoch", `UPDATE sessions SET epoch = epoch + 1 WHERE` + mine},
		{"a leaf's offset", "offset", `UPDATE sessions SET leaf_offset = leaf_offset + 1 WHERE session_key = 'k fork'`},
		{"a base offset", "offset", `UPDATE sessions SET base_offset = base_offset + 1 WHERE` + mine},
		{"a factor", "factor", `UPDATE sessions SET factor_milli = factor_milli + 1 WHERE` + mine},
		{"a dialect", "dialect", `UPDATE sessions SET dialect = dialect + 1 WHERE` + mine},
		{"a lost state", "state", `DELETE FROM session_states WHERE as_of = (SELECT min(as_of) FROM session_states WHERE` + mine + `) AND` + mine},
		{"an unreadable state", "state", `UPDATE session_states SET state = '{' WHERE as_of = (SELECT max(as_of) FROM session_states WHERE` + mine + `) AND` + mine},
		{"a state's summaries", "state", `UPDATE session_states SET state = convert_to(jsonb_set(convert_from(state, 'UTF8')::jsonb, '{live,0,tokens}', '1')::text, 'UTF8') WHERE as_of = (SELECT max(as_of) FROM session_states WHERE` + mine + `) AND` + mine},
		{"a lost event", "log", `DELETE FROM events WHERE seq = 3 AND` + mine},
		{"an event's epoch", "log", `UPDATE events SET epoch = epoch + 1 WHERE seq = 3 AND` + mine},
		{"a message's bytes", "body", `UPDATE events SET body = '{"role":"user","content":"other"}' WHERE seq = 1 AND` + mine},
		{"a lost body", "body", `DELETE FROM bodies WHERE` + mine},
		{"a large body's bytes", "body", `UPDATE bodies SET body = body || ' ' WHERE` + mine},
		{"a role", "facts", `UPDATE events SET role = role + 1 WHERE seq = 1 AND` + mine},
		{"tokens", "facts", `UPDATE events SET tokens = tokens + 1 WHERE seq = 1 AND` + mine},
		{"flags", "facts", `UPDATE events SET flags = flags # 1 WHERE seq = 1 AND` + mine},
		{"links", "facts", `UPDATE events SET links = NULL WHERE seq = 2 AND` + mine},
		{"unreadable links", "facts", `UPDATE events SET links = '\xff' WHERE seq = 2 AND` + mine},
		{"an older reader", "facts", `UPDATE events SET reader_version = reader_version - 1 WHERE seq = 2 AND` + mine},
		{"an offset in the log", "offset", `UPDATE events SET offset_tokens = offset_tokens + 1 WHERE seq = 3 AND` + mine},
		{"a key of nothing", "key", `UPDATE event_keys SET seq = 100000 WHERE kind = 1 AND` + mine},
		{"a key's payload", "key", `UPDATE event_keys SET payload_hash = 'x' WHERE kind = 1 AND` + mine},
		{"a turn's lost key", "key", `DELETE FROM event_keys WHERE kind = 3 AND` + mine},
		{"a debt of the future", "debt", `INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget) SELECT tenant_id, sid, 1000, 1, 1 FROM sessions WHERE` + mine},
		{"a debt of nobody", "debt", `INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget) VALUES ('t', gen_random_uuid(), 1, 1, 1)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			backup(t, conn, true)
			tag, err := conn.Exec(t.Context(), c.sql)
			if err != nil || tag.RowsAffected() == 0 {
				t.Fatalf("%s, %v", tag, err)
			}
			found := differences(t, s)
			ok := false
			for _, d := range found {
				ok = ok || d.What == c.what && d.Detail != "" && d.SID != ""
			}
			if !ok {
				t.Errorf("found %+v", found)
			}
			backup(t, conn, false)
		})
	}
	if found := differences(t, s); len(found) > 0 {
		t.Errorf("the test did not put all back: %+v", found)
	}
}

// backup keeps what the test changes, or brings it back.
func backup(t *testing.T, conn *pgx.Conn, keep bool) {
	t.Helper()
	for _, table := range []string{"sessions", "session_states", "events", "bodies", "event_keys", "compaction_debt"} {
		sql := `CREATE TEMP TABLE kept_` + table + ` AS TABLE ` + table
		if !keep {
			sql = `TRUNCATE ` + table + `; INSERT INTO ` + table + ` OVERRIDING SYSTEM VALUE TABLE kept_` + table + `; DROP TABLE kept_` + table
		}
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
