package engine

import "sync"

// mostKnown bounds what is remembered; a full set is emptied.
const mostKnown = 1 << 16

// known is what a node has seen of sessions. It forgets.
type known[K comparable, V any] struct {
	mu   sync.Mutex
	seen map[K]V
}

func (k *known[K, V]) get(key K) (V, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.seen[key]
	return v, ok
}

func (k *known[K, V]) put(key K, v V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.seen[key]; k.seen == nil || len(k.seen) >= mostKnown && !ok {
		k.seen = make(map[K]V)
	}
	k.seen[key] = v
}

func (k *known[K, V]) drop(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.seen, key)
}
