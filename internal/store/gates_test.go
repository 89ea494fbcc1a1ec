package store_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// bury leaves the tombstone of an erased life of a session.
func bury(t testing.TB, url, session, hostSession string) {
	t.Helper()
	sum := sha256.Sum256([]byte(hostSession))
	exec(t, url, `INSERT INTO tombstones (tenant_id, key_hash, sid, host_sessions) VALUES ($1, session_grave($1, $2), $3, ARRAY[$4::bytea])`,
		tenant, session, uuid.New(), sum[:])
}

func exec(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestErasedSessionStaysErased(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	bury(t, url, "k", "old life")
	write := func(hostSession string) error {
		it := item("k", msg("a", 1))
		it.HostSession = hostSession
		_, err := s.Append(t.Context(), it)
		return err
	}
	// A late write of the old life, or one that names no life, brings nothing back.
	for _, hostSession := range []string{"old life", ""} {
		if err := write(hostSession); !errors.Is(err, contextengine.ErrSessionErased) {
			t.Errorf("host session %q: %v", hostSession, err)
		}
	}
	// A new life of the host starts a new one here; then writes need not name it.
	for _, hostSession := range []string{"new life", ""} {
		if err := write(hostSession); err != nil {
			t.Errorf("host session %q: %v", hostSession, err)
		}
	}
	if err := write("old life"); !errors.Is(err, contextengine.ErrSessionErased) {
		t.Errorf("late write beside the new life: %v", err)
	}
	mustAppend(t, s, item("another", msg("a", 1)))
}

func TestLeaseTokenMustBeHeld(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	a := mustAppend(t, s, item("k", msg("a", 1)))
	write := func(session, token string) error {
		it := item(session, msg("b", 1))
		it.LeaseToken = token
		_, err := s.Append(t.Context(), it)
		return err
	}
	exec(t, url, `INSERT INTO leases (tenant_id, sid, owner, token, expires_at) VALUES ($1, $2, 'o', 'held', $3)`,
		tenant, a.SID, time.Now().Add(time.Hour))
	if err := write("k", "held"); err != nil {
		t.Errorf("held: %v", err)
	}
	for _, session := range []string{"k", "unknown"} {
		if err := write(session, "other"); !errors.Is(err, store.ErrLeaseStale) {
			t.Errorf("%s: another's token: %v", session, err)
		}
	}
	if err := write("k", ""); err != nil {
		t.Errorf("no token: %v", err)
	}
	exec(t, url, `UPDATE leases SET expires_at = $1`, time.Now().Add(-time.Second))
	if err := write("k", "held"); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("expired: %v", err)
	}
}

// All outcomes of one batch: what one item meets changes nothing for the rest.
func TestItemsOfABatchHaveTheirOwnOutcomes(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	bury(t, url, "erased", "x")
	mustAppend(t, s, item("known", msg("a", 1, "one")))
	stale := int64(7)
	cases := map[string]struct {
		it   *store.Item
		want func(error) bool
	}{
		"erased":   {item("erased", msg("a", 1)), func(err error) bool { return errors.Is(err, contextengine.ErrSessionErased) }},
		"unknown":  {&store.Item{Tenant: tenant, SessionKey: "nobody", Events: []store.NewEvent{msg("a", 1)}}, func(err error) bool { return errors.Is(err, contextengine.ErrUnknownSession) }},
		"conflict": {item("known", msg("b", 1, "one")), func(err error) bool { _, ok := errors.AsType[*contextengine.IdempotencyConflictError](err); return ok }},
		"stale":    {&store.Item{Tenant: tenant, SessionKey: "s", Create: true, ExpectedHead: &stale, Events: []store.NewEvent{msg("a", 1)}}, func(err error) bool { _, ok := errors.AsType[*contextengine.StaleHeadError](err); return ok }},
		"new":      {item("new", msg("a", 1, "k"), msg("b", 1)), func(err error) bool { return err == nil }},
		"lease":    {&store.Item{Tenant: tenant, SessionKey: "l", Create: true, LeaseToken: "none", Events: []store.NewEvent{msg("a", 1)}}, func(err error) bool { return errors.Is(err, store.ErrLeaseStale) }},
	}
	type result struct {
		name string
		err  error
	}
	results := make(chan result)
	const times = 20 // so that most of them meet in a batch
	for range times {
		for name, c := range cases {
			go func() {
				it := *c.it
				_, err := s.Append(t.Context(), &it)
				results <- result{name, err}
			}()
		}
	}
	for range times * len(cases) {
		if r := <-results; !cases[r.name].want(r.err) {
			t.Errorf("%s: %v", r.name, r.err)
		}
	}
	if n := len(log(t, s, "new")); n != times+1 {
		t.Errorf("%d events in the new session, want %d", n, times+1)
	}
}
