package engine

import "sync"

// mostKnown bounds a set of sessions; a full one is emptied.
const mostKnown = 1 << 16

// known is a set of sessions of which a node has seen something once. It forgets.
type known struct {
	mu   sync.Mutex
	seen map[cacheKey]struct{}
}

func (k *known) has(tenant, key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.seen[cacheKey{tenant, key}]
	return ok
}

func (k *known) put(tenant, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= mostKnown {
		k.seen = make(map[cacheKey]struct{})
	}
	k.seen[cacheKey{tenant, key}] = struct{}{}
}
