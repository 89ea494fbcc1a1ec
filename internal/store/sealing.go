package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/vault"
)

// errOtherLife: what was to be appended is encrypted and the session is not, or
// for another life of it, or the reverse. Nothing was written.
var errOtherLife = errors.New("the session is not the one that the write was made for")

// sealTries bounds how often an append starts over because the session became
// another one meanwhile.
const sealTries = 5

// pin is the life of a session that appends are made for, and its key.
type pin struct {
	// sealer is nil for a session that is not encrypted.
	sealer *vault.Sealer
	// born is set when the life was seen: such an append opens no session. An
	// erased one would come back under its old id, with a key that is destroyed.
	born  bool
	until time.Time
}

const (
	// A node remembers so many sessions' pins for so long. One that is wrong
	// costs an append a second round trip.
	maxPins = 8192
	pinTime = 5 * time.Minute
)

// pins are by session; the zero value is empty.
type pins struct {
	mu sync.Mutex
	of map[pinKey]pin
}

type pinKey struct{ tenant, key string }

func (p *pins) get(k pinKey) (pin, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got, ok := p.of[k]
	if ok && time.Now().After(got.until) {
		delete(p.of, k)
		return pin{}, false
	}
	return got, ok
}

// put keeps a pin and answers with the one that counts: of two that are not born
// the first.
func (p *pins) put(k pinKey, n pin) pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.of[k]; ok && !n.born && n.sealer != nil {
		return old
	}
	if p.of == nil || len(p.of) >= maxPins {
		p.of = make(map[pinKey]pin) // all are found again
	}
	n.until = time.Now().Add(pinTime)
	p.of[k] = n
	return n
}

// forget drops a session's pin, unless another one has taken its place.
func (p *pins) forget(k pinKey, was pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[k].sealer == was.sealer {
		delete(p.of, k)
	}
}

// drop forgets a session's pin.
func (p *pins) drop(k pinKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, k)
}

// pinOf is the life that an append to a session is for. create opens the session
// where it is missing; without it such a session is nobody's.
func (s *Store) pinOf(ctx context.Context, tenant, key, hostSession string, create bool) (pin, error) {
	k := pinKey{tenant, key}
	if p, ok := s.pins.get(k); ok {
		return p, nil
	}
	cur, err := s.Session(ctx, tenant, key)
	if errors.Is(err, contextengine.ErrUnknownSession) {
		if !create || !s.cfg.Encrypt {
			return pin{}, nil
		}
		// Otherwise every late write to an erased session would leave a key.
		if erased, err := s.Erased(ctx, tenant, key, hostSession); err != nil || erased {
			if err == nil {
				err = contextengine.ErrSessionErased
			}
			return pin{}, err
		}
		return s.pinNew(ctx, k)
	}
	if err != nil {
		return pin{}, err
	}
	sealer, err := s.sealerFor(ctx, cur)
	if err != nil {
		return pin{}, err
	}
	if sealer == nil && cur.Head == 0 {
		return pin{}, nil // its first event decides
	}
	return s.pins.put(k, pin{sealer: sealer, born: true}), nil
}

func (s *Store) pinNew(ctx context.Context, k pinKey) (pin, error) {
	made, err := s.newSealer(ctx, k.tenant)
	if err != nil {
		return pin{}, err
	}
	got := s.pins.put(k, pin{sealer: made})
	if got.sealer != made {
		// Nobody else has seen the key.
		if err := s.cfg.Vault.Destroy(ctx, k.tenant, made.SID()); err != nil {
			s.log.Warn("a session key that nobody uses is left", "sid", made.SID(), "error", err)
		}
	}
	return got, nil
}

// newSealer makes the key of a session that does not exist yet.
func (s *Store) newSealer(ctx context.Context, tenant string) (*vault.Sealer, error) {
	if s.cfg.Vault == nil {
		return nil, vault.ErrClosed
	}
	sid, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return s.cfg.Vault.Make(ctx, tenant, sid)
}

// sealerFor is the key for what is written to a session; nil where it is not
// encrypted. One without events becomes so.
func (s *Store) sealerFor(ctx context.Context, cur Session) (*vault.Sealer, error) {
	switch {
	case cur.Sealed:
		return s.openerOf(cur).key(ctx)
	case cur.Head == 0 && s.cfg.Encrypt:
		return s.cfg.Vault.Make(ctx, cur.Tenant, cur.SID)
	}
	return nil, nil
}

// sealTo is an item for a session whose lock is held: cur as it is, or one that
// does not exist.
func (s *Store) sealTo(ctx context.Context, cur Session, exists bool, it *Item) (*Item, error) {
	var sealer *vault.Sealer
	var err error
	switch {
	case exists:
		sealer, err = s.sealerFor(ctx, cur)
	case it.Create && (s.cfg.Encrypt || it.ofSealed):
		sealer, err = s.newSealer(ctx, it.Tenant)
	}
	if err != nil {
		return nil, err
	}
	return sealItem(it, pin{sealer: sealer, born: exists}), nil
}

// appendFor appends an item, encrypted where its session is.
func (s *Store) appendFor(ctx context.Context, it *Item) (Appended, error) {
	for try := 1; ; try++ {
		p, err := s.pinOf(ctx, it.Tenant, it.SessionKey, it.HostSession, it.Create)
		if err != nil {
			return Appended{}, err
		}
		a, err := s.submit(ctx, sealItem(it, p))
		k := pinKey{it.Tenant, it.SessionKey}
		again := errors.Is(err, errOtherLife) || errors.Is(err, contextengine.ErrUnknownSession) && it.Create && p.born
		switch {
		case err == nil && p.sealer != nil && !p.born:
			s.pins.put(k, pin{sealer: p.sealer, born: true})
		case err != nil && (again || !p.born):
			s.pins.forget(k, p)
		}
		if !again {
			return a, err
		}
		if try == sealTries {
			return Appended{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// sealItem is the item as it is stored. The caller's stays as it is.
func sealItem(it *Item, p pin) *Item {
	if p.sealer == nil {
		return it
	}
	out := *it
	out.pinned = p.sealer.SID()
	out.Create = it.Create && !p.born
	out.Events = slices.Clone(it.Events)
	for i := range out.Events {
		e := &out.Events[i]
		e.Body = p.sealer.Seal(vault.Event, nil, e.Body)
		copy(e.Hash[:], p.sealer.SealHash(e.Hash[:]))
		e.Keys = slices.Clone(e.Keys)
		for j := range e.Keys {
			e.Keys[j] = sealKey(p.sealer, e.Keys[j])
		}
	}
	return &out
}

// sealKey hides what a key tells of a payload.
func sealKey(s *vault.Sealer, k Key) Key {
	switch k.Kind {
	case DeltaKey:
		k.Value = s.Tag(k.Value)
	case HostEntryKey:
		if at := bytes.LastIndexByte(k.Value, entrySep); at >= 0 {
			k.Value = append(bytes.Clone(k.Value[:at+1]), s.SealShort(string(k.Value[at+1:]))...)
		}
	case ClientKey, TurnKey, AnchorKey:
	}
	return k
}
