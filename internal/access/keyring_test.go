package access_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/internal/access"
)

// shelf keeps keys in memory and counts how often it is asked.
type shelf struct {
	mu    sync.Mutex
	keys  map[string]access.Key
	used  map[string]time.Time
	asked int
	err   error
}

func (s *shelf) Key(_ context.Context, id string) (access.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return access.Key{}, s.err
	}
	k, ok := s.keys[id]
	if !ok {
		return access.Key{}, access.ErrUnknownKey
	}
	return k, nil
}

func (s *shelf) KeysUsed(_ context.Context, used map[string]time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	maps.Copy(s.used, used)
	return nil
}

type bundle struct {
	shelf *shelf
	now   time.Time
	ring  *access.Keyring
	token string
	key   access.Key
}

func setup(t *testing.T, change func(*access.Options)) *bundle {
	t.Helper()
	b := &bundle{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	b.key, b.token = access.NewKey("acme", "bot", access.Gateway, b.now, b.now.Add(time.Hour))
	b.shelf = &shelf{keys: map[string]access.Key{b.key.ID: b.key}, used: map[string]time.Time{}}
	opts := access.Options{
		Static: map[string]access.Principal{"static": {Tenant: "umbrella", Scopes: access.Admin}},
		Now:    func() time.Time { return b.now },
	}
	if change != nil {
		change(&opts)
	}
	b.ring = access.NewKeyring(b.shelf, opts)
	t.Cleanup(func() {
		if err := b.ring.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bundle) who(t *testing.T, token string) (access.Principal, error) {
	t.Helper()
	return b.ring.Who(t.Context(), token)
}

func TestWhoHoldsAToken(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	if p, err := b.who(t, b.token); err != nil || p != (access.Principal{Tenant: "acme", Key: b.key.ID, Scopes: access.Gateway}) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := b.who(t, "static"); err != nil || p.Tenant != "umbrella" || p.Scopes != access.Admin || !strings.HasPrefix(p.Key, "static-") {
		t.Errorf("of the settings: %+v, %v", p, err)
	}
	flipped := []byte(b.token)
	if flipped[len(flipped)-1]++; flipped[len(flipped)-1] > 'z' {
		flipped[len(flipped)-1] = 'a'
	}
	_, stranger := access.NewKey("acme", "", access.Admin, b.now, time.Time{})
	for _, token := range []string{"", "x", string(flipped), stranger, b.token + "a", b.token[1:], strings.ToUpper(b.token), "ek_" + b.key.ID, "ek_" + b.key.ID + "_", b.token[:20] + "\x00" + b.token[21:]} {
		if p, err := b.who(t, token); !errors.Is(err, access.ErrUnauthorized) || p != (access.Principal{}) {
			t.Errorf("%q: %+v, %v", token, p, err)
		}
	}
}

func TestANodeBelievesWhatItReadForAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for range 3 {
		if _, err := b.who(t, b.token); err != nil {
			t.Fatal(err)
		}
	}
	if b.shelf.asked != 1 {
		t.Errorf("asked %d times", b.shelf.asked)
	}
	revoked := b.key
	revoked.RevokedAt = b.now
	b.shelf.keys[b.key.ID] = revoked
	b.now = b.now.Add(5 * time.Second)
	if _, err := b.who(t, b.token); !errors.Is(err, access.ErrRevoked) {
		t.Errorf("five seconds after it was revoked: %v", err)
	}
	delete(b.shelf.keys, b.key.ID)
	b.now = b.now.Add(5 * time.Second)
	if _, err := b.who(t, b.token); !errors.Is(err, access.ErrUnauthorized) || errors.Is(err, access.ErrRevoked) {
		t.Errorf("after it was deleted: %v", err)
	}
}

func TestAKeyEndsAtItsHour(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *access.Options) { o.Belief = 24 * time.Hour })
	b.now = b.now.Add(time.Hour - 1)
	if _, err := b.who(t, b.token); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(1)
	if _, err := b.who(t, b.token); !errors.Is(err, access.ErrExpired) {
		t.Errorf("%v", err)
	}
}

func TestAnAbsentSourceIsNoRefusal(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	b := setup(t, nil)
	b.shelf.err = away
	if _, err := b.who(t, b.token); !errors.Is(err, away) || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("%v", err)
	}
	if _, err := b.who(t, "static"); err != nil {
		t.Errorf("a key of the settings: %v", err)
	}
	b.shelf.err = nil
	if _, err := b.who(t, b.token); err != nil {
		t.Errorf("back: %v", err)
	}
}

func TestAnOpenNodeStillKnowsKeys(t *testing.T) {
	t.Parallel()
	open := access.Principal{Tenant: "default", Scopes: access.Admin}
	b := setup(t, func(o *access.Options) { o.Open = &open })
	for _, token := range []string{"", "some other service's"} {
		if p, err := b.who(t, token); err != nil || p != open {
			t.Errorf("%q: %+v, %v", token, p, err)
		}
	}
	if p, err := b.who(t, b.token); err != nil || p.Tenant != "acme" {
		t.Errorf("%+v, %v", p, err)
	}
	_, stranger := access.NewKey("acme", "", access.Admin, b.now, time.Time{})
	if _, err := b.who(t, stranger); !errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("a key that nobody made: %v", err)
	}
}

func TestUsesAreNotedAtTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	if _, err := b.who(t, b.token); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Minute) // read anew, and used again
	if _, err := b.who(t, b.token); err != nil {
		t.Fatal(err)
	}
	if _, err := b.who(t, "ek_"+b.key.ID+"_"+strings.Repeat("a", 52)); err == nil {
		t.Fatal("let in")
	}
	if err := b.ring.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at := b.shelf.used[b.key.ID]; !at.Equal(b.now) || len(b.shelf.used) != 1 {
		t.Errorf("used %v", b.shelf.used)
	}
}

func TestMadeUpIDsTakeLittle(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	if _, err := b.who(t, b.token); err != nil {
		t.Fatal(err)
	}
	for range 12_000 {
		_, token := access.NewKey("x", "", access.Admin, b.now, time.Time{})
		if _, err := b.who(t, token); err == nil {
			t.Fatal("let in")
		}
	}
	asked := b.shelf.asked
	if _, err := b.who(t, b.token); err != nil || b.shelf.asked != asked {
		t.Errorf("a known key was forgotten for unknown ones: %v", err)
	}
	if n := b.ring.Cached(); n > 10_000 {
		t.Errorf("%d ids are remembered", n)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	set, err := access.ParseScopes([]string{"analyst", "gateway"})
	if err != nil || strings.Join(set.Names(), " ") != "gateway analyst" {
		t.Errorf("%v, %v", set.Names(), err)
	}
	if !set.Allow(access.Gateway|access.Worker) || set.Allow(access.Worker) || set.Allow(0) || !access.Admin.Allow(0) || !access.Admin.Allow(access.Worker) {
		t.Error("what they allow")
	}
	for _, words := range [][]string{nil, {""}, {"Admin"}, {"gateway", "x"}} {
		if _, err := access.ParseScopes(words); err == nil {
			t.Errorf("%q", words)
		}
	}
}
