// Package verifytest makes sessions that lived through all that can be done to
// one, and does to the database what must never happen.
package verifytest

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
	"github.com/engined/engined/internal/store/storetest"
)

// Tenant is whose sessions Life makes.
const Tenant = "t"

// On names a session of the tenant.
func On(key string) contextengine.Session {
	return contextengine.Session{Tenant: Tenant, SessionKey: key, SessionID: "host", GatewayID: "gw"}
}

// Open is a store on a database, and an engine on the store, until the test ends.
func Open(t *testing.T, url string) (*store.Store, *engine.Lossless) {
	t.Helper()
	s, err := storetest.Open(t, t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	e := engine.NewLossless(engine.Config{Log: s, Rewriting: engine.Rewriting{On: true, Over: 100, KeepAssistants: 2, GainShare: 0.01}})
	t.Cleanup(func() { _ = e.Dispose(context.Background()) })
	return s, e
}

// Turns are the messages of n turns with a tool call each.
func Turns(n int) []json.RawMessage {
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

// Life does to a session what can be done to one, and forks it.
func Life(t *testing.T, e *engine.Lossless, key string) {
	t.Helper()
	ctx, s := t.Context(), On(key)
	budget := 4000
	try := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	write := func() {
		_, err := e.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: Turns(8)})
		try("ingest", err)
	}
	compact := func() {
		res, err := e.Compact(ctx, contextengine.CompactParams{Session: s, Force: true, TokenBudget: &budget})
		try("compact", err)
		if !res.Compacted {
			t.Fatalf("not compacted: %s", res.Reason)
		}
	}
	_, err := e.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "turn", Messages: Turns(2), TokenBudget: &budget})
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
	s = On(key + " fork")
	write()
	compact()
	write()
	res, err := e.Maintain(ctx, contextengine.MaintainParams{Session: s, Reason: contextengine.MaintainAfterTurn})
	try("maintain", err)
	if !res.Changed {
		t.Fatalf("nothing was rewritten: %s", res.Reason)
	}
	write()
}

const (
	mine  = ` tenant_id = 't' AND sid = (SELECT sid FROM sessions WHERE session_key = 'k')`
	forks = ` tenant_id = 't' AND sid = (SELECT sid FROM sessions WHERE session_key = 'k fork')`
)

// Corruption is a change to what is stored of the session "k" that Life made, or
// of its fork.
type Corruption struct {
	Name string
	// What is the projection that the change breaks.
	What string
	SQL  string
	// Derivable: the log still tells what belongs there.
	Derivable bool
}

// Corruptions are one of each kind.
func Corruptions() []Corruption {
	return []Corruption{
		{"a head too high", "head", `UPDATE sessions SET head = head + 1 WHERE` + mine, true},
		{"a head too low", "head", `UPDATE sessions SET head = head - 1 WHERE` + mine, true},
		{"a host head beyond", "head", `UPDATE sessions SET host_head = head + 1 WHERE` + mine, true},
		{"an epoch", "epoch", `UPDATE sessions SET epoch = epoch + 1 WHERE` + mine, true},
		{"a leaf's offset", "offset", `UPDATE sessions SET leaf_offset = leaf_offset + 1 WHERE session_key = 'k fork'`, true},
		{"a base offset", "offset", `UPDATE sessions SET base_offset = base_offset + 1 WHERE` + mine, true},
		{"a factor", "factor", `UPDATE sessions SET factor_milli = factor_milli + 1 WHERE` + mine, true},
		{"a dialect", "dialect", `UPDATE sessions SET dialect = dialect + 1 WHERE` + mine, true},
		{"a lost state", "state", `DELETE FROM session_states WHERE as_of = (SELECT min(as_of) FROM session_states WHERE` + mine + `) AND` + mine, true},
		{"an unreadable state", "state", `UPDATE session_states SET state = '{' WHERE as_of = (SELECT max(as_of) FROM session_states WHERE` + mine + `) AND` + mine, true},
		{"a state's summaries", "state", `UPDATE session_states SET state = convert_to(jsonb_set(convert_from(state, 'UTF8')::jsonb, '{live,0,tokens}', '1')::text, 'UTF8') WHERE as_of = (SELECT max(as_of) FROM session_states WHERE` + mine + `) AND` + mine, true},
		{"a state's shorter forms", "state", `UPDATE session_states SET state = convert_to(jsonb_set(convert_from(state, 'UTF8')::jsonb, '{superseded,0,by}', '99999')::text, 'UTF8') WHERE as_of = (SELECT max(as_of) FROM session_states WHERE` + forks + `) AND` + forks, true},
		{"a lost event", "log", `DELETE FROM events WHERE seq = 3 AND` + mine, false},
		{"an event's epoch", "log", `UPDATE events SET epoch = epoch + 1 WHERE seq = 3 AND` + mine, true},
		{"a message's bytes", "body", `UPDATE events SET body = '{"role":"user","content":"other"}' WHERE seq = 1 AND` + mine, false},
		{"a lost body", "body", `DELETE FROM bodies WHERE` + mine, false},
		{"a large body's bytes", "body", `UPDATE bodies SET body = body || ' ' WHERE` + mine, false},
		{"a role", "facts", `UPDATE events SET role = role + 1 WHERE seq = 1 AND` + mine, true},
		{"tokens", "facts", `UPDATE events SET tokens = tokens + 1 WHERE seq = 1 AND` + mine, true},
		{"flags", "facts", `UPDATE events SET flags = flags # 1 WHERE seq = 1 AND` + mine, true},
		{"links", "facts", `UPDATE events SET links = NULL WHERE seq = 2 AND` + mine, true},
		{"unreadable links", "facts", `UPDATE events SET links = '\xff' WHERE seq = 2 AND` + mine, true},
		{"an older reader", "facts", `UPDATE events SET reader_version = reader_version - 1 WHERE seq = 2 AND` + mine, true},
		{"an offset in the log", "offset", `UPDATE events SET offset_tokens = offset_tokens + 1 WHERE seq = 3 AND` + mine, true},
		{"a key of nothing", "key", `UPDATE event_keys SET seq = 100000 WHERE kind = 1 AND` + mine, true},
		{"a key's payload", "key", `UPDATE event_keys SET payload_hash = 'x' WHERE kind = 1 AND` + mine, true},
		{"a turn's lost key", "key", `DELETE FROM event_keys WHERE kind = 3 AND` + mine, true},
		{"a debt of the future", "debt", `INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget) SELECT tenant_id, sid, 1000, 1, 1 FROM sessions WHERE` + mine, true},
		{"a debt of nobody", "debt", `INSERT INTO compaction_debt (tenant_id, sid, epoch, tokens, budget) VALUES ('t', gen_random_uuid(), 1, 1, 1)`, true},
	}
}

// Backup keeps what the test changes, or brings it back.
func Backup(t *testing.T, conn *pgx.Conn, keep bool) {
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
