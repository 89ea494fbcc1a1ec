package vault_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/engined/engined/internal/vault"
)

// shelf is a KeyStore in memory. The one on Postgres is tested with the store.
type shelf struct {
	mu   sync.Mutex
	keys map[uuid.UUID]vault.StoredKey
	asks int
	// rewrapping, if any, is called before a key is replaced.
	rewrapping func(vault.StoredKey)
}

func (s *shelf) Key(_ context.Context, _ string, sid uuid.UUID) (vault.Wrapped, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	k, ok := s.keys[sid]
	return k.Wrapped, ok, nil
}

func (s *shelf) PutKey(_ context.Context, tenant string, sid uuid.UUID, w vault.Wrapped) (vault.Wrapped, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.keys[sid]; ok {
		return k.Wrapped, nil
	}
	if s.keys == nil {
		s.keys = make(map[uuid.UUID]vault.StoredKey)
	}
	s.keys[sid] = vault.StoredKey{Tenant: tenant, SID: sid, Wrapped: w}
	return w, nil
}

func (s *shelf) DropKey(_ context.Context, _ string, sid uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, sid)
	return nil
}

func (s *shelf) KeysByMaster(context.Context) ([]vault.MasterUse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := map[string]vault.MasterUse{}
	for _, k := range s.sorted() {
		by[k.Master] = vault.MasterUse{Master: k.Master, Keys: by[k.Master].Keys + 1, Samples: append(by[k.Master].Samples, k)}
	}
	return slices.Collect(maps.Values(by)), nil
}

// sorted are the keys of the one tenant in order.
func (s *shelf) sorted() []vault.StoredKey {
	return slices.SortedFunc(maps.Values(s.keys), func(a, b vault.StoredKey) int { return bytes.Compare(a.SID[:], b.SID[:]) })
}

func (s *shelf) KeysNotUnder(_ context.Context, master, _ string, after uuid.UUID, limit int) (out []vault.StoredKey, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sorted() {
		if k.Master != master && bytes.Compare(k.SID[:], after[:]) > 0 && len(out) < limit {
			out = append(out, k)
		}
	}
	return out, nil
}

func (s *shelf) Rewrap(_ context.Context, old vault.StoredKey, w vault.Wrapped) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rewrapping != nil {
		s.rewrapping(old)
	}
	if k := s.keys[old.SID]; k.Master != old.Master || !bytes.Equal(k.Key, old.Key) {
		return false, nil
	}
	old.Wrapped = w
	s.keys[old.SID] = old
	return true, nil
}

func masters(t testing.TB, lines ...string) *vault.Masters {
	t.Helper()
	m, err := vault.ParseMasters([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func masterLine(t testing.TB, id string) string {
	t.Helper()
	line, err := vault.NewMasterKey(id)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func sealer(t testing.TB, v *vault.Vault, tenant string) *vault.Sealer {
	t.Helper()
	s, err := v.Make(context.Background(), tenant, uuid.Must(uuid.NewV7()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsSealedOpensInItsPlaceAlone(t *testing.T) {
	t.Parallel()
	v := vault.New(&shelf{}, masters(t, masterLine(t, "a")))
	s, other := sealer(t, v, "t"), sealer(t, v, "t")
	rapid.Check(t, func(r *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(r, "plain")
		detail := rapid.SliceOf(rapid.Byte()).Draw(r, "detail")
		sealed := s.Seal(vault.Event, detail, plain)
		if !vault.IsSealed(sealed) || len(sealed) != len(plain)+vault.Overhead || len(plain) > 8 && bytes.Contains(sealed, plain) {
			r.Fatalf("%d bytes became %x", len(plain), sealed)
		}
		got, err := s.Open(vault.Event, detail, sealed)
		if err != nil || !bytes.Equal(got, plain) {
			r.Fatalf("%x, %v", got, err)
		}
		elsewhere := map[string]func() ([]byte, error){
			"another kind":    func() ([]byte, error) { return s.Open(vault.Draft, detail, sealed) },
			"another detail":  func() ([]byte, error) { return s.Open(vault.Event, append(detail, 0), sealed) },
			"another session": func() ([]byte, error) { return other.Open(vault.Event, detail, sealed) },
			"a shorter form":  func() ([]byte, error) { return s.Open(vault.Event, detail, sealed[:len(sealed)-1]) },
			"a changed byte": func() ([]byte, error) {
				at := rapid.IntRange(1, len(sealed)-1).Draw(r, "at")
				changed := bytes.Clone(sealed)
				changed[at] ^= 1
				return s.Open(vault.Event, detail, changed)
			},
		}
		for name, open := range elsewhere {
			if got, err := open(); got != nil || !corrupt(err) {
				r.Errorf("%s: %x, %v", name, got, err)
			}
		}
	})
}

func corrupt(err error) bool {
	_, ok := errors.AsType[*vault.CorruptError](err)
	return ok
}

func TestPlainBytesAndTextsStay(t *testing.T) {
	t.Parallel()
	s := sealer(t, vault.New(&shelf{}, masters(t, masterLine(t, "a"))), "t")
	for _, plain := range []string{"", `{"role":"user"}`, " \x00 ", "sealed:1:AAAA"} {
		if b, err := s.Open(vault.Event, nil, []byte(plain)); err != nil || string(b) != plain {
			t.Errorf("%q: %q, %v", plain, b, err)
		}
		if text, err := s.OpenText(vault.Job, nil, plain); err != nil || text != plain {
			t.Errorf("%q: %q, %v", plain, text, err)
		}
		sealed := s.SealText(vault.Job, nil, plain)
		if text, err := s.OpenText(vault.Job, nil, sealed); err != nil || text != plain || !vault.IsSealedText(sealed) {
			t.Errorf("%q: %q, %v", plain, text, err)
		}
	}
	for _, broken := range []string{"\x1asealed:1:", "\x1asealed:1:!", "\x1asealed:1:AAAA"} {
		if _, err := s.OpenText(vault.Job, nil, broken); !corrupt(err) {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

func TestHashesCompareWithinASessionAndNowhereElse(t *testing.T) {
	t.Parallel()
	v := vault.New(&shelf{}, masters(t, masterLine(t, "a")))
	s, other := sealer(t, v, "t"), sealer(t, v, "t")
	h := sha256.Sum256([]byte("yes"))
	sealed := s.SealHash(h[:])
	if !bytes.Equal(sealed, s.SealHash(h[:])) || bytes.Equal(sealed, other.SealHash(h[:])) || bytes.Contains(sealed, h[:8]) {
		t.Errorf("%x of %x", sealed, h)
	}
	if got := s.OpenHash(sealed); !bytes.Equal(got, h[:]) {
		t.Errorf("%x came back of %x", got, h)
	}
	if bytes.Equal(s.Tag(h[:]), other.Tag(h[:])) || !bytes.Equal(s.Tag(h[:]), s.Tag(h[:])) {
		t.Error("a tag is not of its session")
	}
	short := hex.EncodeToString(h[:8])
	hidden := s.SealShort(short)
	if hidden == other.SealShort(short) || strings.Contains(hidden, short) || s.OpenShort(hidden) != short {
		t.Errorf("%s, %s", hidden, s.OpenShort(hidden))
	}
	for _, text := range []string{"", "v2", strings.Repeat("0", 32), short} {
		if got := s.OpenShort(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestKeysAreReadOnceAndDestroyedForGood(t *testing.T) {
	t.Parallel()
	keys := &shelf{}
	v := vault.New(keys, masters(t, masterLine(t, "a")))
	s := sealer(t, v, "t")
	sealed := s.Seal(vault.Event, nil, []byte("x"))
	for range 3 {
		got, err := v.Of(t.Context(), "t", s.SID())
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := got.Open(vault.Event, nil, sealed); err != nil || string(plain) != "x" {
			t.Fatalf("%q, %v", plain, err)
		}
	}
	if keys.asks != 0 {
		t.Errorf("the store was asked %d times for a key that was there", keys.asks)
	}
	if err := v.Destroy(t.Context(), "t", s.SID()); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Of(t.Context(), "t", s.SID()); got != nil || err != nil {
		t.Errorf("%v, %v after the key was destroyed", got, err)
	}
}

func TestRotating(t *testing.T) {
	t.Parallel()
	keys := &shelf{}
	older, newer := masterLine(t, "older"), masterLine(t, "newer")
	s := sealer(t, vault.New(keys, masters(t, older)), "t")
	sealed := s.Seal(vault.Event, nil, []byte("x"))
	if _, err := vault.New(keys, masters(t, newer)).Of(t.Context(), "t", s.SID()); !errors.Is(err, vault.ErrMaster) {
		t.Errorf("without the older key: %v", err)
	}
	if _, err := vault.New(keys, masters(t, masterLine(t, "older"))).Of(t.Context(), "t", s.SID()); !errors.Is(err, vault.ErrMaster) {
		t.Errorf("with another key under its id: %v", err)
	}
	both := vault.New(keys, masters(t, "# two", newer, "", older))
	if n, err := both.Rotate(t.Context(), func(int) {}); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := both.Rotate(t.Context(), func(int) {}); n != 0 || err != nil {
		t.Errorf("a second time: %d, %v", n, err)
	}
	after := vault.New(keys, masters(t, newer))
	if uses, err := after.Check(t.Context()); err != nil || len(uses) != 1 || uses[0].Keys != 1 || uses[0].Master != "newer" {
		t.Errorf("%+v, %v", uses, err)
	}
	got, err := after.Of(t.Context(), "t", s.SID())
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := got.Open(vault.Event, nil, sealed); err != nil || string(plain) != "x" {
		t.Errorf("%q, %v", plain, err)
	}
	// A key is of its session: under another one it is none.
	stolen := uuid.Must(uuid.NewV7())
	keys.keys[stolen] = vault.StoredKey{Tenant: "t", SID: stolen, Wrapped: keys.keys[s.SID()].Wrapped}
	if _, err := after.Of(t.Context(), "t", stolen); !corrupt(err) {
		t.Errorf("a key under another session: %v", err)
	}
}

// damage flips a bit of a session's wrapped key.
func (s *shelf) damage(sid uuid.UUID) {
	k := s.keys[sid]
	k.Key = bytes.Clone(k.Key)
	k.Key[20] ^= 1
	s.keys[sid] = k
}

func TestOneDamagedKeyIsNoWrongMaster(t *testing.T) {
	t.Parallel()
	keys := &shelf{}
	older, newer := masterLine(t, "older"), masterLine(t, "newer")
	v := vault.New(keys, masters(t, older))
	// The first of all, which is the one that is looked at first.
	first, other := sealer(t, v, "t"), sealer(t, v, "t")
	keys.damage(first.SID())

	fresh := vault.New(keys, masters(t, older))
	if _, err := fresh.Check(t.Context()); err != nil {
		t.Fatalf("a process would not start for one damaged key: %v", err)
	}
	if _, err := fresh.Of(t.Context(), "t", first.SID()); !corrupt(err) {
		t.Errorf("the damaged one: %v", err)
	}
	if got, err := fresh.Of(t.Context(), "t", other.SID()); got == nil || err != nil {
		t.Errorf("the one beside it: %v", err)
	}
	if _, err := vault.New(keys, masters(t, masterLine(t, "older"))).Check(t.Context()); !errors.Is(err, vault.ErrMaster) {
		t.Errorf("another master key under the id: %v", err)
	}

	// A rotation passes it over, tells it, and does the others.
	n, err := vault.New(keys, masters(t, newer, older)).Rotate(t.Context(), func(int) {})
	if n != 1 || err == nil || !strings.Contains(err.Error(), first.SID().String()) {
		t.Errorf("%d rotated, %v", n, err)
	}
	if k := keys.keys[other.SID()]; k.Master != "newer" {
		t.Errorf("the key beside it is under %s", k.Master)
	}
	// It is the last one under its master key. Nodes start all the same.
	uses, err := vault.New(keys, masters(t, newer, older)).Check(t.Context())
	if err != nil || len(uses) != 2 || !slices.ContainsFunc(uses, func(u vault.MasterUse) bool { return u.Closed && u.Master == "older" }) {
		t.Errorf("%+v, %v", uses, err)
	}
	if _, err := vault.New(keys, masters(t, newer)).Check(t.Context()); !errors.Is(err, vault.ErrMaster) {
		t.Errorf("without the older key: %v", err)
	}
}

func TestARotationEndsBesideAnotherOne(t *testing.T) {
	t.Parallel()
	keys := &shelf{}
	a, b := masterLine(t, "a"), masterLine(t, "b")
	s := sealer(t, vault.New(keys, masters(t, a)), "t")
	// The other one has wrapped each key anew before this one replaces it.
	keys.rewrapping = func(old vault.StoredKey) {
		old.Key = bytes.Repeat([]byte{1}, len(old.Key))
		keys.keys[old.SID] = old
	}
	n, err := vault.New(keys, masters(t, b, a)).Rotate(t.Context(), func(int) {})
	if n != 0 || err == nil || !strings.Contains(err.Error(), "rotate again") {
		t.Errorf("%d rotated, %v", n, err)
	}
	if keys.keys[s.SID()].Master != "a" {
		t.Error("it replaced what was not the key that it had read")
	}
}

func TestAKeyThatWasMissingIsFoundOnceItIsThere(t *testing.T) {
	t.Parallel()
	keys := &shelf{}
	line := masterLine(t, "a")
	node, other := vault.New(keys, masters(t, line)), vault.New(keys, masters(t, line))
	sid := uuid.Must(uuid.NewV7())
	if got, err := node.Of(t.Context(), "t", sid); got != nil || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := other.Make(t.Context(), "t", sid); err != nil {
		t.Fatal(err)
	}
	if got, err := node.Of(t.Context(), "t", sid); got == nil || err != nil {
		t.Errorf("a node that had looked before: %v, %v", got, err)
	}
}

func TestFilesOfMasterKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	good := masterLine(t, "a")
	for name, text := range map[string]string{
		"empty": "", "only a comment": "# a", "no key": "a", "short": "a AAAA", "no base64": "a " + strings.Repeat("!", 44),
		"bad id": "a/b " + strings.Fields(good)[1], "twice": good + "\n" + good,
	} {
		_, err := vault.ParseMasters([]byte(text))
		if err == nil {
			t.Errorf("%s is taken", name)
		} else if strings.Contains(err.Error(), strings.Fields(good)[1]) {
			t.Errorf("%s: the error repeats the key", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := sealer(f, vault.New(&shelf{}, masters(f, masterLine(f, "a"))), "t")
	f.Add([]byte(nil))
	f.Add([]byte{0xff})
	f.Add([]byte{0xff, 1})
	f.Add(bytes.Repeat([]byte{0xff, 1, 2}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := s.Open(vault.Event, nil, b)
		if vault.IsSealed(b) != corrupt(err) || err == nil && !bytes.Equal(got, b) {
			t.Errorf("%x: %x, %v", b, got, err)
		}
		if _, err := s.OpenText(vault.Job, nil, "\x1asealed:1:"+string(b)); !corrupt(err) {
			t.Errorf("%q: %v", b, err)
		}
		s.OpenShort(string(b))
		s.OpenHash(b)
	})
}
