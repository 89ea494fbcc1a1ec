package engine

import (
	"container/list"
	"sync"
)

// A cache keeps the material of the windows that a node assembled last. What
// it holds cannot change: events are immutable, and a reader always asks
// Postgres first whether the session, its epoch and its head are still these.
type cache struct {
	mu    sync.Mutex
	max   int
	size  int
	byKey map[cacheKey]*list.Element
	order *list.List // newest first
}

type cacheKey struct{ tenant, session string }

type cached struct {
	key      cacheKey
	material *material
	size     int
}

func newCache(maxBytes int) *cache {
	return &cache{max: maxBytes, byKey: make(map[cacheKey]*list.Element), order: list.New()}
}

func (c *cache) get(tenant, session string) *material {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[cacheKey{tenant, session}]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).material
}

// forget drops a session that is gone.
func (c *cache) forget(tenant, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[cacheKey{tenant, session}]; ok {
		c.drop(e)
	}
}

func (c *cache) put(tenant, session string, m *material) {
	n := &cached{key: cacheKey{tenant, session}, material: m, size: m.bytes()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[n.key]; ok {
		if old := e.Value.(*cached); old.material.sid == m.sid && old.material.head > m.head {
			return // a slower reader does not take back what a faster one read
		}
		c.drop(e)
	}
	if n.size > c.max {
		return
	}
	c.byKey[n.key] = c.order.PushFront(n)
	c.size += n.size
	for c.size > c.max {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	n := c.order.Remove(e).(*cached)
	delete(c.byKey, n.key)
	c.size -= n.size
}

// bytes is roughly what the material holds in memory.
func (m *material) bytes() int {
	const perEntry, perBody = 160, 64
	n := 1024 + perEntry*len(m.entries)
	for _, b := range m.bodies {
		n += len(b) + perBody
	}
	for _, t := range m.texts {
		n += len(t) + perBody
	}
	return n
}
