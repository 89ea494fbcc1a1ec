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

func lease(key, owner string) store.LeaseRequest {
	return store.LeaseRequest{Tenant: tenant, SessionKey: key, Owner: owner, TTL: time.Hour}
}

func mustTake(t testing.TB, s *store.Store, r store.LeaseRequest) store.Lease {
	t.Helper()
	l, err := s.TakeLease(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// expire ends all leases as time would.
func expire(t testing.TB, url string) {
	t.Helper()
	exec(t, url, `UPDATE leases SET expires_at = clock_timestamp() - interval '1 millisecond'`)
}

func TestLeaseChangesHandsOnlyWhenItIsOver(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	write := func(token string) error {
		it := item("k", msg("a", 1))
		it.LeaseToken = token
		_, err := s.Append(t.Context(), it)
		return err
	}
	a := mustTake(t, s, lease("k", "a"))
	if row, err := s.Session(t.Context(), tenant, "k"); err != nil || row.Head != 0 || row.Epoch != 1 {
		t.Errorf("the session that a lease opened: %+v, %v", row, err)
	}
	if again := mustTake(t, s, lease("k", "a")); again.Token != a.Token || !again.Renewed || again.ExpiresAt.Before(a.ExpiresAt) {
		t.Errorf("renewal of %+v: %+v", a, again)
	}
	_, err := s.TakeLease(t.Context(), lease("k", "b"))
	if held, ok := errors.AsType[*store.LeaseHeldError](err); !ok || held.Left <= 0 {
		t.Fatalf("the lease of another: %v", err)
	}
	if err := write(a.Token); err != nil {
		t.Error(err)
	}

	// Over, but nobody has it yet: the holder's writes are late already.
	expire(t, url)
	if err := write(a.Token); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("write under a lease that is over: %v", err)
	}
	b := mustTake(t, s, lease("k", "b"))
	if b.Token <= a.Token || len(b.Token) != len(a.Token) || b.Renewed {
		t.Errorf("took over %+v as %+v", a, b)
	}
	for token, want := range map[string]error{a.Token: store.ErrLeaseStale, b.Token: nil, "": nil, "x": store.ErrLeaseStale} {
		if err := write(token); !errors.Is(err, want) {
			t.Errorf("write with %q: %v, want %v", token, err, want)
		}
	}
	if _, err := s.TakeLease(t.Context(), lease("k", "a")); err == nil {
		t.Error("the first owner came back while the second holds it")
	}

	// Given back, it is free; the next token is higher although the lease ended
	// at once.
	if err := s.EndLease(t.Context(), tenant, "k", a.Token); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("gave another's lease back: %v", err)
	}
	if err := s.EndLease(t.Context(), tenant, "k", b.Token); err != nil {
		t.Error(err)
	}
	if err := s.EndLease(t.Context(), tenant, "k", b.Token); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("gave it back twice: %v", err)
	}
	if err := write(b.Token); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("write after giving it back: %v", err)
	}
	if c := mustTake(t, s, lease("k", "b")); c.Token <= b.Token {
		t.Errorf("after %s came %s", b.Token, c.Token)
	}
	if err := s.EndLease(t.Context(), tenant, "nobody", "x"); !errors.Is(err, contextengine.ErrUnknownSession) {
		t.Errorf("lease of an unknown session: %v", err)
	}
}

// A clock that went back does not let a token come twice.
func TestTokensGrowWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	mustTake(t, s, lease("k", "a"))
	exec(t, url, `UPDATE leases SET fence = fence + 3600000000, token = lpad((fence + 3600000000)::text, 16, '0')`)
	future := mustTake(t, s, lease("k", "a"))
	expire(t, url)
	if next := mustTake(t, s, lease("k", "b")); next.Token <= future.Token {
		t.Errorf("%s after %s", next.Token, future.Token)
	}
}

func TestOfManyOwnersOneGetsTheLease(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openURL(t, url), openURL(t, url)}
	var wg sync.WaitGroup
	got := make(chan store.Lease, 40)
	for i := range cap(got) {
		wg.Go(func() {
			l, err := nodes[i%2].TakeLease(t.Context(), lease("k", fmt.Sprint("owner", i)))
			if _, held := errors.AsType[*store.LeaseHeldError](err); held {
				return
			}
			if err != nil {
				t.Error(err)
			}
			got <- l
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Errorf("%d owners have the lease", len(got))
	}
}

// A step is a write too.
func TestStepUnderALostLeaseIsRefused(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	s := openURL(t, url)
	mustAppend(t, s, item("k", msg("a", 1)))
	a := mustTake(t, s, lease("k", "a"))
	step := func() error {
		_, err := s.StepEpoch(t.Context(), tenant, "k", 0, resetStep(a.Token))
		return err
	}
	if err := step(); err != nil {
		t.Fatal(err)
	}
	expire(t, url)
	if err := step(); !errors.Is(err, store.ErrLeaseStale) {
		t.Errorf("step under a lost lease: %v", err)
	}
	if row, err := s.Session(t.Context(), tenant, "k"); err != nil || row.Head != 2 || row.Epoch != 2 {
		t.Errorf("session after a refused step: %+v, %v", row, err)
	}
}
