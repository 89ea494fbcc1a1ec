package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/testdb"
)

func TestSubagentsThatNeverBeganAreSwept(t *testing.T) {
	t.Parallel()
	n := start(t, testdb.New(t), bustest.Start(t), nil)
	parent := contextengine.Session{Tenant: "t", SessionKey: "p"}
	say := func(s contextengine.Session) {
		t.Helper()
		p := contextengine.IngestParams{Session: s, Message: json.RawMessage(`{"role":"user","content":"hi"}`)}
		if _, err := n.engine.Ingest(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	prepare := func(child string, ttl time.Duration) {
		t.Helper()
		_, err := n.engine.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{
			Session: parent, ChildSessionKey: child, TTLMs: ttl.Milliseconds(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	say(parent)
	prepare("begun", time.Hour)
	say(contextengine.Session{Tenant: "t", SessionKey: "begun"})
	prepare("patient", time.Hour)
	prepare("idle", time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := n.store.Session(ctx, "t", "idle")
		if errors.Is(err, contextengine.ErrUnknownSession) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	for _, key := range []string{"begun", "patient"} {
		if _, err := n.store.Session(t.Context(), "t", key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}
