package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// TestThroughPgBouncer has two nodes work through one pooler that gives each
// transaction another connection of the server's: appends to common sessions under
// their locks, leases, conditional writes, rows of two tenants, erasures, the feed.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	direct := testdb.New(t)
	url := testdb.Bounce(t, direct)
	var nodes []*store.Store
	for range 2 {
		s, err := store.Open(t.Context(), store.Config{URL: url, RowSecurity: true, PgBouncer: true, MaxConns: 8})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		nodes = append(nodes, s)
	}
	if ok, err := nodes[0].CanSecureRows(t.Context()); err != nil || !ok {
		t.Fatalf("row level security: %v, %v", ok, err)
	}
	const clients, writes = 12, 40
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			s, of := nodes[i%2], fmt.Sprintf("tenant%d", i%3)
			for j := range writes {
				it := item(fmt.Sprintf("s%d", j%4), msg(fmt.Sprintf("%d of %d", j, i), 1, fmt.Sprintf("k%d-%d", i, j)))
				it.Tenant = of
				a, err := s.Append(t.Context(), it)
				if err != nil {
					t.Error(err)
					return
				}
				// What was written is read by the other node, and by its tenant alone.
				if _, err := nodes[(i+1)%2].View(t.Context(), of, it.SessionKey, a.SID, 0, 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	total := 0
	for i := range 3 {
		of := fmt.Sprintf("tenant%d", i)
		found, err := nodes[0].Sessions(t.Context(), of, "", "", 100)
		if err != nil || len(found) != 4 {
			t.Fatalf("%s has %d sessions: %v", of, len(found), err)
		}
		for _, s := range found {
			total += int(s.Head)
		}
	}
	if total != clients*writes {
		t.Errorf("%d events, want %d", total, clients*writes)
	}
	for {
		page, err := nodes[1].FeedWithin(t.Context(), "tenant0", store.Cursor{}, 500, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == clients/3*writes {
			break
		}
		time.Sleep(20 * time.Millisecond) // other tests' transactions hold the feed back
	}
	r := store.LeaseRequest{Tenant: "tenant0", SessionKey: "s0", Owner: "a", TTL: time.Minute}
	if _, err := nodes[0].TakeLease(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Owner = "b"
	if _, err := nodes[1].TakeLease(t.Context(), r); err == nil {
		t.Error("a lease is held twice")
	}
	if e, err := nodes[1].Erase(t.Context(), "tenant0", "s0"); err != nil || !e.Complete {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := nodes[0].Session(t.Context(), "tenant0", "s0"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("%v", err)
	}
	// Nodes look at the schema through the pooler; migrations go past it.
	if current, target, err := store.Schema(t.Context(), url); err != nil || current != target {
		t.Errorf("schema %d of %d, %v", current, target, err)
	}
}
