package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
	"github.com/engined/engined/internal/worker"
)

// retains starts a worker that looks for what it has to erase all the time.
func retains(t *testing.T, n *node, url string, r store.Retention, k store.Keeping) {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Options{InProcess: bustest.Start(t), Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Config{URL: url, RowSecurity: true})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(worker.Config{
		Debts: st, Bus: b, Compactor: n.engine.Compactor, Name: t.Name(),
		Eraser: st, Retention: r, Keeping: k, RetentionInterval: 10 * time.Millisecond,
	})
	if err := w.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Error(err)
		}
		_ = b.Close(ctx)
		st.Close()
	})
}

// awaitSessions waits until a tenant has so many sessions and answers with their keys.
func (n *node) awaitSessions(t *testing.T, tenant string, want int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := n.store.Sessions(ctx, tenant, "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) <= want {
			keys := []string{}
			for _, s := range found {
				keys = append(keys, s.Key)
			}
			return keys
		}
		<-tick.C
	}
}

func (n *node) ingest(t *testing.T, tenant, key string) {
	t.Helper()
	p := contextengine.IngestParams{
		Session: contextengine.Session{Tenant: tenant, SessionKey: key},
		Message: json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("m", 1000))),
	}
	if _, err := n.engine.Ingest(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// TestAWorkerErasesWhatHasExpiredAndNothingElse, by each rule, of a session at a
// time. What is not to go was there all the while that the rest went.
func TestAWorkerErasesWhatHasExpiredAndNothingElse(t *testing.T) {
	t.Parallel()
	if storetest.Encrypted() {
		t.Skip("it goes by the bytes of messages as they are sent")
	}
	url := testdb.New(t)
	n := start(t, url, bustest.Start(t), nil)
	for _, key := range []string{"old", "idle", "leased", "fresh"} {
		n.ingest(t, "time", key)
	}
	if _, err := n.store.TakeLease(t.Context(), store.LeaseRequest{Tenant: "time", SessionKey: "leased", Owner: "o", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		n.ingest(t, "size", fmt.Sprint("s", i))
		exec(t, url, fmt.Sprintf(`UPDATE sessions SET updated_at = now() - interval '%d days' WHERE session_key = 's%d'`, 20-i, i))
	}
	n.ingest(t, "size", "young")
	exec(t, url, `UPDATE sessions SET created_at = now() - interval '100 days' WHERE session_key IN ('old', 'leased')`)
	exec(t, url, `UPDATE sessions SET updated_at = now() - interval '50 days' WHERE session_key IN ('idle', 'leased')`)
	retains(t, n, url, store.Retention{Age: 90 * 24 * time.Hour, Idle: 40 * 24 * time.Hour, Audit: true},
		store.Keeping{Bytes: 4500, Floor: 24 * time.Hour, Audit: true})
	if diff := cmp.Diff([]string{"fresh", "leased"}, n.awaitSessions(t, "time", 2)); diff != "" {
		t.Errorf("by time:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s3", "s4", "s5", "young"}, n.awaitSessions(t, "size", 4)); diff != "" {
		t.Errorf("by size:\n%s", diff)
	}
	for tenant, want := range map[string]int{"time": 2, "size": 3} {
		entries, err := n.store.Audit(t.Context(), tenant, store.AuditQuery{Key: "retention"}, 10)
		if err != nil || len(entries) != want {
			t.Errorf("%s: %d audit entries, want %d: %v", tenant, len(entries), want, err)
		}
	}
	// Nothing more goes, in however many walks: what is written meanwhile is kept.
	for i := range 20 {
		n.ingest(t, "time", fmt.Sprint("new", i))
	}
	if keys := n.awaitSessions(t, "time", 22); len(keys) != 22 {
		t.Errorf("%d sessions are left, want 22", len(keys))
	}
	if keys := n.awaitSessions(t, "size", 4); len(keys) != 4 {
		t.Errorf("%d sessions are left, want 4", len(keys))
	}
}
