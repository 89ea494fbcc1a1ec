package vault

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// KeyStore keeps wrapped data keys. Whoever backs up the log leaves it out.
// Errors of it being away wrap ErrUnavailable.
type KeyStore interface {
	// Key is the session's; ok is false where there is none.
	Key(ctx context.Context, tenant string, sid uuid.UUID) (w Wrapped, ok bool, err error)
	// PutKey keeps a key unless the session has one, and answers with the one it has.
	PutKey(ctx context.Context, tenant string, sid uuid.UUID, w Wrapped) (Wrapped, error)
	// DropKey destroys a key; one that is not there is no error.
	DropKey(ctx context.Context, tenant string, sid uuid.UUID) error
	// KeysByMaster counts keys by the id of what wraps them, with some of each.
	KeysByMaster(ctx context.Context) ([]MasterUse, error)
	// KeysNotUnder are keys that another master key wraps, behind a tenant's
	// session, in their order.
	KeysNotUnder(ctx context.Context, master, tenant string, sid uuid.UUID, limit int) ([]StoredKey, error)
	// Rewrap replaces a key if it still is the one that was read, and tells whether
	// it was.
	Rewrap(ctx context.Context, old StoredKey, w Wrapped) (bool, error)
}

// StoredKey is a session's key as it is kept.
type StoredKey struct {
	Tenant string
	SID    uuid.UUID
	Wrapped
}

// MasterUse is a master key that wraps data keys.
type MasterUse struct {
	Master string
	Keys   int64
	// Samples are a few of them.
	Samples []StoredKey
	// Closed is set by Check: none of them opens.
	Closed bool
}

const (
	// cacheSize and cacheTime bound the keys that a process keeps. A key that
	// another node destroyed is known here no longer than that.
	cacheSize = 8192
	cacheTime = 5 * time.Minute
)

// Vault gives out sealers. Its methods may be called at the same time.
type Vault struct {
	store   KeyStore
	masters *Masters
	now     func() time.Time

	mu    sync.Mutex
	known map[owner]*list.Element
	order *list.List // of *entry, the newest used first
}

type owner struct {
	tenant string
	sid    uuid.UUID
}

type entry struct {
	owner  owner
	sealer *Sealer
	until  time.Time
}

// New makes a Vault that asks nothing yet.
func New(store KeyStore, masters *Masters) *Vault {
	return &Vault{store: store, masters: masters, now: time.Now, known: make(map[owner]*list.Element), order: list.New()}
}

// Of is the sealer of an encrypted session; nil where it has no key, so that
// nobody can read it any more. That is looked up every time: keys may be put
// back from a backup.
func (v *Vault) Of(ctx context.Context, tenant string, sid uuid.UUID) (*Sealer, error) {
	if s, ok := v.cached(owner{tenant, sid}); ok {
		return s, nil
	}
	w, ok, err := v.store.Key(ctx, tenant, sid)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return v.open(tenant, sid, w)
}

// Keeps reports whether the key store has a key of a session, readable or not.
func (v *Vault) Keeps(ctx context.Context, tenant string, sid uuid.UUID) (bool, error) {
	_, ok, err := v.store.Key(ctx, tenant, sid)
	if err != nil {
		return false, fmt.Errorf("session key: %w", err)
	}
	return ok, nil
}

// Make is the sealer of a session that has no events yet; it gets a key, unless
// it has one.
func (v *Vault) Make(ctx context.Context, tenant string, sid uuid.UUID) (*Sealer, error) {
	if s, ok := v.cached(owner{tenant, sid}); ok {
		return s, nil
	}
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	w, err := v.store.PutKey(ctx, tenant, sid, v.masters.wrap(tenant, sid, key))
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	return v.open(tenant, sid, w)
}

func (v *Vault) open(tenant string, sid uuid.UUID, w Wrapped) (*Sealer, error) {
	key, err := v.masters.unwrap(tenant, sid, w)
	if err != nil {
		return nil, err
	}
	s, err := newSealer(tenant, sid, key)
	clear(key)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	v.keep(owner{tenant, sid}, s)
	return s, nil
}

// Destroy destroys a session's key for good.
func (v *Vault) Destroy(ctx context.Context, tenant string, sid uuid.UUID) error {
	v.Forget(tenant, sid)
	if err := v.store.DropKey(ctx, tenant, sid); err != nil {
		return fmt.Errorf("session key: %w", err)
	}
	v.Forget(tenant, sid) // who read it meanwhile
	return nil
}

// Forget drops a session's key from this process' memory.
func (v *Vault) Forget(tenant string, sid uuid.UUID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.known[owner{tenant, sid}]; at != nil {
		v.drop(at)
	}
}

func (v *Vault) cached(o owner) (s *Sealer, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.known[o]
	if at == nil {
		return nil, false
	}
	e := at.Value.(*entry) //nolint:forcetypeassert // the list holds nothing else
	if !v.now().Before(e.until) {
		v.drop(at)
		return nil, false
	}
	v.order.MoveToFront(at)
	return e.sealer, true
}

func (v *Vault) keep(o owner, s *Sealer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.known[o]; at != nil {
		v.drop(at)
	}
	v.known[o] = v.order.PushFront(&entry{owner: o, sealer: s, until: v.now().Add(cacheTime)})
	if v.order.Len() > cacheSize {
		v.drop(v.order.Back())
	}
}

func (v *Vault) drop(at *list.Element) {
	e := v.order.Remove(at).(*entry) //nolint:forcetypeassert // as above
	delete(v.known, e.owner)
}

// Check sees whether this process can open what the key store holds: some key of
// each master key's. It is ErrMaster where it cannot. Damaged keys say nothing
// against a master key, not even where few are left under it and all are damaged,
// as after a rotation: those are Closed.
func (v *Vault) Check(ctx context.Context) ([]MasterUse, error) {
	uses, err := v.store.KeysByMaster(ctx)
	if err != nil {
		return nil, fmt.Errorf("session keys: %w", err)
	}
	failed, opened := make([]error, len(uses)), false
	for i, u := range uses {
		failed[i] = v.opensAny(u.Samples)
		opened = opened || failed[i] == nil
	}
	for i := range uses {
		u := &uses[i]
		if failed[i] == nil {
			continue
		}
		u.Closed = true
		if all := int64(len(u.Samples)) == u.Keys; all && opened && v.masters.Has(u.Master) {
			failed[i] = nil
			continue
		}
		failed[i] = fmt.Errorf("under %s, %d in all: %w", u.Master, u.Keys, failed[i])
	}
	return uses, errors.Join(failed...)
}

func (v *Vault) opensAny(keys []StoredKey) (err error) {
	for _, k := range keys {
		var key []byte
		if key, err = v.masters.unwrap(k.Tenant, k.SID, k.Wrapped); err == nil {
			clear(key)
			return nil
		}
	}
	return err
}

// Active is the id of the master key that wraps new data keys.
func (v *Vault) Active() string { return v.masters.Active() }

// rotatePage is how many keys are rewrapped between two reports.
const rotatePage = 500

// Rotate wraps every data key by the active master key, each once. What is
// encrypted stays as it is. It may be broken off and run again, beside nodes that
// serve. tell is called with how many are done. Keys that are damaged are passed
// over and told in the end, and so it is told when keys are left: another process
// wraps by another master key.
func (v *Vault) Rotate(ctx context.Context, tell func(int)) (done int, err error) {
	// Where none is missing and none another one, what doesn't open is damaged.
	if _, err := v.Check(ctx); err != nil {
		return 0, err
	}
	var damaged []error
	var after StoredKey
	for {
		page, err := v.store.KeysNotUnder(ctx, v.masters.active, after.Tenant, after.SID, rotatePage)
		if err != nil {
			return done, fmt.Errorf("session keys: %w", err)
		}
		for _, after = range page {
			key, err := v.masters.unwrap(after.Tenant, after.SID, after.Wrapped)
			if err != nil {
				damaged = append(damaged, err)
				continue
			}
			w := v.masters.wrap(after.Tenant, after.SID, key)
			clear(key)
			ok, err := v.store.Rewrap(ctx, after, w)
			if err != nil {
				return done, fmt.Errorf("session key: %w", err)
			}
			if ok {
				done++
			}
		}
		if len(page) < rotatePage {
			break
		}
		tell(done)
	}
	left, err := v.left(ctx)
	if err != nil {
		return done, err
	}
	switch n := left - int64(len(damaged)); {
	case len(damaged) > 0:
		const told = 10
		return done, fmt.Errorf("session keys that do not open: %d; they stay as they are, under their master keys: %w", len(damaged), errors.Join(damaged[:min(told, len(damaged))]...))
	case n > 0:
		return done, fmt.Errorf("session keys that came under another master key meanwhile: %d; have %s first in the file of every node, and rotate again", n, v.masters.active)
	}
	return done, nil
}

// left counts the keys that another master key than the active one wraps.
func (v *Vault) left(ctx context.Context) (n int64, err error) {
	uses, err := v.store.KeysByMaster(ctx)
	if err != nil {
		return 0, fmt.Errorf("session keys: %w", err)
	}
	for _, u := range uses {
		if u.Master != v.masters.active {
			n += u.Keys
		}
	}
	return n, nil
}
