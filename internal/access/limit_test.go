package access_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/engined/engined/internal/access"
)

// account is what a tenant has, in memory.
type account struct {
	override        access.Override
	sessions, bytes int64
	err             error
}

func (a *account) Override(context.Context, string) (access.Override, error) {
	return a.override, a.err
}

func (a *account) CountSessions(_ context.Context, _ string, most int64) (int64, error) {
	return min(a.sessions, most), a.err
}

func (a *account) CountBytes(context.Context, string) (int64, error) { return a.bytes, a.err }

func limiter(t *testing.T, q access.Quota, a *account) (*access.Limiter, *time.Time) {
	t.Helper()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := access.NewLimiter(q, a, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err := l.Look(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, &now
}

func enter(t *testing.T, l *access.Limiter, name string) (leave func(), e *access.LimitError) {
	t.Helper()
	leave, err := l.Enter(name, false)
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return leave, e
}

func TestRate(t *testing.T) {
	t.Parallel()
	l, now := limiter(t, access.Quota{Rate: 4}, &account{})
	for i := range 8 {
		if _, e := enter(t, l, "acme"); e != nil {
			t.Fatalf("call %d: %v", i, e)
		}
	}
	_, e := enter(t, l, "acme")
	if e == nil || e.Wait != 250*time.Millisecond || e.Limit != 4 {
		t.Fatalf("%+v", e)
	}
	*now = now.Add(e.Wait)
	if _, e := enter(t, l, "acme"); e != nil {
		t.Errorf("after the wait: %v", e)
	}
	if _, e := enter(t, l, "acme"); e == nil {
		t.Error("one more than there is")
	}
	*now = now.Add(time.Hour)
	for i := range 8 {
		if _, e := enter(t, l, "acme"); e != nil {
			t.Fatalf("call %d of an idle tenant: %v", i, e)
		}
	}
	if _, e := enter(t, l, "acme"); e == nil {
		t.Error("idle time is saved without end")
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	l, _ := limiter(t, access.Quota{Concurrency: 2}, &account{})
	leave, _ := enter(t, l, "acme")
	enter(t, l, "acme")
	if _, e := enter(t, l, "acme"); e == nil || e.Wait == 0 {
		t.Errorf("the third: %v", e)
	}
	if _, err := l.Enter("acme", true); err != nil {
		t.Errorf("a stream: %v", err)
	}
	leave()
	if _, e := enter(t, l, "acme"); e != nil {
		t.Errorf("after one left: %v", e)
	}
}

func TestTenantsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	two := int64(2)
	l, _ := limiter(t, access.Quota{Concurrency: 1}, &account{override: access.Override{Concurrency: &two}})
	if err := l.Look(t.Context(), "umbrella"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acme", "umbrella"} {
		for i := range 2 {
			if _, e := enter(t, l, name); e != nil {
				t.Errorf("call %d of %s: %v", i, name, e)
			}
		}
		if _, e := enter(t, l, name); e == nil || e.Limit != 2 {
			t.Errorf("the third of %s: %v", name, e)
		}
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	a := &account{sessions: 9, bytes: 99}
	l, _ := limiter(t, access.Quota{Sessions: 10, StorageBytes: 100}, a)
	known, unknown := func() (bool, error) { return true, nil }, func() (bool, error) { return false, nil }
	grow := func(exists func() (bool, error)) string {
		t.Helper()
		if err := l.Look(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		err := l.Grow("acme", exists)
		if e, ok := errors.AsType[*access.LimitError](err); ok {
			if e.Wait != 0 {
				t.Errorf("waiting helps nothing: %+v", e)
			}
			return e.What
		}
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	if got := grow(unknown); got != "" {
		t.Errorf("below both limits: %s", got)
	}
	a.sessions = 11
	if got := grow(unknown); got != "sessions" {
		t.Errorf("a new session too many: %q", got)
	}
	if got := grow(known); got != "" {
		t.Errorf("a session that exists: %s", got)
	}
	a.bytes = 100
	if got := grow(known); got != "bytes" {
		t.Errorf("full: %q", got)
	}
	a.sessions, a.bytes = 0, 0
	if got := grow(unknown); got != "" {
		t.Errorf("after an erasure: %s", got)
	}
}

func TestUsageThatIsUnknownStaysAsItWas(t *testing.T) {
	t.Parallel()
	a := &account{bytes: 100}
	l, _ := limiter(t, access.Quota{StorageBytes: 100}, a)
	a.err = errors.New("away")
	if err := l.Look(t.Context(), "acme"); err == nil {
		t.Fatal("no error")
	}
	if err := l.Grow("acme", nil); err == nil {
		t.Error("a full tenant may write while its usage is unknown")
	}
}
