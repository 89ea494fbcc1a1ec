package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Source is where keys are kept.
type Source interface {
	// Key reads a key; ErrUnknownKey where there is none.
	Key(ctx context.Context, id string) (Key, error)
	// KeysUsed notes when keys were last used.
	KeysUsed(ctx context.Context, used map[string]time.Time) error
}

const (
	// maxCached bounds the memory that made-up ids can take.
	maxCached = 10_000
	// maxLookups bounds the connections that they can.
	maxLookups = 4
	// writeTimeout bounds the noting of uses.
	writeTimeout = 5 * time.Second
)

// Options of a Keyring. Zero values are the defaults.
type Options struct {
	// Static are the keys of the settings: who each token is.
	Static map[string]Principal
	// Open, if set, is who a request without a key is. A token that is no key of
	// ours is then taken for none.
	Open *Principal
	// Belief is how long a node goes by what it read of a key; 5 s.
	Belief time.Duration
	// NoteUses is how often uses are written; 30 s.
	NoteUses time.Duration
	// Now is the clock; time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Keyring knows who holds a token.
type Keyring struct {
	opts   Options
	src    Source
	static map[[sha256.Size]byte]Principal

	mu     sync.RWMutex
	cached map[string]*read

	lookups chan struct{}
	stop    chan struct{}
	ended   chan struct{}
	once    sync.Once
}

// read is what was read of an id, the key's absence included.
type read struct {
	key     Key
	known   bool
	at      time.Time
	mu      sync.Mutex
	used    time.Time
	written time.Time
}

// NewKeyring makes a keyring; Close ends what it runs.
func NewKeyring(src Source, opts Options) *Keyring {
	if opts.Belief == 0 {
		opts.Belief = 5 * time.Second
	}
	if opts.NoteUses == 0 {
		opts.NoteUses = 30 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	k := &Keyring{
		opts: opts, src: src, static: make(map[[sha256.Size]byte]Principal, len(opts.Static)), cached: map[string]*read{},
		lookups: make(chan struct{}, maxLookups), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	for token, p := range opts.Static {
		hash := sha256.Sum256([]byte(token))
		p.Key = staticName(hash)
		k.static[hash] = p
	}
	go k.noteUses()
	return k
}

// Who tells who holds a token; the empty one is a request without a key. An
// ErrUnauthorized says that nobody does, any other error that it is unknown.
// Tokens are compared by their hashes, so the time it takes tells nothing.
func (k *Keyring) Who(ctx context.Context, token string) (Principal, error) {
	hash := sha256.Sum256([]byte(token))
	if p, ok := k.static[hash]; ok {
		return p, nil
	}
	id, ours := ID(token)
	if !ours {
		if k.opts.Open != nil {
			return *k.opts.Open, nil
		}
		return Principal{}, ErrUnauthorized
	}
	r, err := k.read(ctx, id)
	if err != nil {
		return Principal{}, fmt.Errorf("API key: %w", err)
	}
	if !r.known {
		return Principal{}, ErrUnauthorized
	}
	now := k.opts.Now()
	if err := r.key.check(hash, now); err != nil {
		return Principal{}, err
	}
	r.use(now)
	return Principal{Tenant: r.key.Tenant, Key: id, Scopes: r.key.Scopes}, nil
}

func (k *Keyring) read(ctx context.Context, id string) (*read, error) {
	if r := k.believed(id); r != nil {
		return r, nil
	}
	select {
	case k.lookups <- struct{}{}:
		defer func() { <-k.lookups }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r := k.believed(id); r != nil { // who waited before us has looked
		return r, nil
	}
	// The time before the question: what is answered may be that old.
	at := k.opts.Now()
	key, err := k.src.Key(ctx, id)
	if err != nil && !errors.Is(err, ErrUnknownKey) {
		return nil, err
	}
	r := &read{key: key, known: err == nil, at: at}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.cached[id]; old != nil {
		r.used, r.written = old.uses()
	} else if len(k.cached) >= maxCached {
		k.evict()
	}
	k.cached[id] = r
	return r, nil
}

// believed is what was read of an id lately.
func (k *Keyring) believed(id string) *read {
	k.mu.RLock()
	defer k.mu.RUnlock()
	r := k.cached[id]
	if r == nil || k.opts.Now().Sub(r.at) >= k.opts.Belief {
		return nil
	}
	return r
}

// evict makes room: ids that nobody has go first, else any that has no use to
// be written. k.mu is held.
func (k *Keyring) evict() {
	room := maxCached / 10
	for _, keep := range []bool{true, false} {
		for id, r := range k.cached {
			if room == 0 {
				return
			}
			used, written := r.uses()
			if keep && r.known || !used.Equal(written) {
				continue
			}
			delete(k.cached, id)
			room--
		}
	}
}

func (r *read) use(now time.Time) {
	r.mu.Lock()
	r.used = now
	r.mu.Unlock()
}

func (r *read) uses() (used, written time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, r.written
}

// noteUses writes from time to time which keys were used.
func (k *Keyring) noteUses() {
	defer close(k.ended)
	tick := time.NewTicker(k.opts.NoteUses)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.writeUses()
		case <-k.stop:
			k.writeUses()
			return
		}
	}
}

func (k *Keyring) writeUses() {
	reads, news := map[string]*read{}, map[string]time.Time{}
	k.mu.RLock()
	for id, r := range k.cached {
		if used, written := r.uses(); used.After(written) {
			reads[id], news[id] = r, used
		}
	}
	k.mu.RUnlock()
	if len(news) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := k.src.KeysUsed(ctx, news); err != nil {
		k.opts.Log.Warn("the uses of API keys were not noted yet", "keys", len(news), "error", err)
		return
	}
	for id, r := range reads {
		r.mu.Lock()
		r.written = news[id]
		r.mu.Unlock()
	}
}

// Close notes the last uses and ends. It may be called more than once.
func (k *Keyring) Close(ctx context.Context) error {
	k.once.Do(func() { close(k.stop) })
	select {
	case <-k.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cached is how many ids the keyring remembers.
func (k *Keyring) Cached() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.cached)
}
