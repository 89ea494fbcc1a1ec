package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/audit"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
)

func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	now := time.Now().Truncate(time.Microsecond)
	if some, err := s.HasKeys(ctx); err != nil || some {
		t.Fatalf("%v, %v", some, err)
	}
	k, token := access.NewKey("acme", "bot", access.Gateway|access.Analyst, now, now.Add(time.Hour))
	if err := s.CreateKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	if some, err := s.HasKeys(ctx); err != nil || !some {
		t.Fatalf("%v, %v", some, err)
	}
	id, _ := access.ID(token)
	got, err := s.Key(ctx, id)
	if err != nil || got.Tenant != "acme" || got.Name != "bot" || got.Scopes != k.Scopes || got.Hash != k.Hash || !got.ExpiresAt.Equal(k.ExpiresAt) || !got.RevokedAt.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := s.Key(ctx, "nobody"); !errors.Is(err, access.ErrUnknownKey) {
		t.Errorf("%v", err)
	}

	later := now.Add(time.Minute)
	for _, used := range []time.Time{later, now} { // of two nodes, out of order
		if err := s.KeysUsed(ctx, map[string]time.Time{id: used, "nobody": used}); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []time.Time{later, later.Add(time.Hour)} {
		if got, err = s.RevokeKey(ctx, id, at); err != nil || !got.RevokedAt.Equal(later) || !got.LastUsedAt.Equal(later) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if some, err := s.HasKeys(ctx); err != nil || some {
		t.Errorf("a revoked key counts: %v, %v", some, err)
	}
	for tenant, want := range map[string]int{"": 1, "acme": 1, "umbrella": 0} {
		if all, err := s.Keys(ctx, tenant); err != nil || len(all) != want {
			t.Errorf("keys of %q: %d, %v", tenant, len(all), err)
		}
	}
}

func TestAuditIsKeptByTenant(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	now := time.Now().Truncate(time.Microsecond)
	old := now.Add(-time.Hour)
	entry := func(tenant, session string, at time.Time) audit.Entry {
		return audit.Entry{Tenant: tenant, At: at, Key: "k", Request: "r", Method: "GET", Route: "/v1/sessions/{key}", Session: session, Status: 200}
	}
	err := s.RecordAudit(ctx, []audit.Entry{entry("a", "s", old), entry("b", "s", now), entry("a", "", now), entry("a", "odd\x00\xff", now)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Audit(ctx, "a", store.AuditQuery{}, 10)
	if err != nil || len(all) != 3 || all[0].Session != "odd\ufffd\ufffd" || all[2].Session != "s" || !all[2].At.Equal(old) || all[0].ID <= all[1].ID {
		t.Fatalf("%+v, %v", all, err)
	}
	for name, tc := range map[string]struct {
		q    store.AuditQuery
		want int
	}{
		"session": {store.AuditQuery{Session: "s"}, 1}, "key": {store.AuditQuery{Key: "x"}, 0}, "before": {store.AuditQuery{Before: all[0].ID}, 2},
		"since": {store.AuditQuery{Since: now}, 2}, "until": {store.AuditQuery{Until: now}, 1},
	} {
		if rows, err := s.Audit(ctx, "a", tc.q, 10); err != nil || len(rows) != tc.want {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	if n, err := s.ForgetAudit(ctx, now, 10); err != nil || n != 1 {
		t.Errorf("forgot %d, %v", n, err)
	}
	if rows, err := s.Audit(ctx, "b", store.AuditQuery{}, 10); err != nil || len(rows) != 1 {
		t.Errorf("of another tenant: %d, %v", len(rows), err)
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	rate, none := 2.5, int64(0)
	want := access.Override{Tenant: "acme", Rate: &rate, Sessions: &none}
	if err := s.SetOverride(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Override(ctx, "acme")
	if err != nil || *got.Rate != rate || *got.Sessions != 0 || got.Concurrency != nil || got.StorageBytes != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.SetOverride(ctx, access.Override{Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Overrides(ctx); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestBytesAreCounted holds the running count to one over everything, through
// appends and deletes.
func TestBytesAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := t.Context()
	count := func(want int64) {
		t.Helper()
		// What another test of the cluster writes may hold the gap-safe place back.
		deadline := time.Now().Add(30 * time.Second)
		for {
			got, err := s.CountBytes(ctx, "acme")
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes, want %d", got, want)
			}
		}
	}
	body := func(n int) string { return `{"role":"user","content":"` + strings.Repeat("x", n-28) + `"}` }
	put := func(tenant, key string, n int) {
		t.Helper()
		it := item(key, msg(body(n), 10))
		it.Tenant = tenant
		mustAppend(t, s, it)
	}
	n := storetest.Overhead()
	count(0)
	put("acme", "one", 1000)
	put("umbrella", "one", 5000)
	count(1000 + n)
	put("acme", "one", 2000)
	put("acme", "two", 300_000) // kept apart
	count(303_000 + 3*n)
	count(303_000 + 3*n)
	put("acme", "two", 50) // not counted yet when it goes
	if _, err := s.Erase(ctx, "acme", "two"); err != nil {
		t.Fatal(err)
	}
	count(3000 + 2*n)
	for most, want := range map[int64]int64{1: 1, 10: 1} {
		if n, err := s.CountSessions(ctx, "acme", most); err != nil || n != want {
			t.Errorf("%d sessions of at most %d, %v", n, most, err)
		}
	}
}
