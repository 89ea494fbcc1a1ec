package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// A batch stops growing at this many items or bytes.
	maxBatchItems = 256
	maxBatchBytes = 4 << 20
	// More than this many waiting items per lane are refused.
	maxWaiting = 8192
	// A batch has this long to commit, whatever its callers' deadlines are: a
	// caller that left must not cancel the others' write.
	batchTimeout = 30 * time.Second
)

var laneSeed = maphash.MakeSeed()

// A lane gathers the items that arrive while its batch is in flight and sends
// them as the next batch. All items of a session go through one lane, so their
// order of arrival at the node is their order in the log.
type lane struct {
	store *Store
	mu    sync.Mutex
	queue []*pending
	busy  bool
	done  chan struct{}
	shut  bool
}

type pending struct {
	ctx    context.Context
	item   *Item
	size   int
	answer chan answer
}

type answer struct {
	appended Appended
	err      error
}

func newLanes(s *Store, n int) []*lane {
	lanes := make([]*lane, n)
	for i := range lanes {
		lanes[i] = &lane{store: s}
	}
	return lanes
}

// Append stores an item and answers when it is durable. When ctx ends first,
// the write may still happen; a retry under the same key finds it.
func (s *Store) Append(ctx context.Context, it *Item) (Appended, error) {
	if err := ctx.Err(); err != nil {
		return Appended{}, err
	}
	if s.cfg.Vault != nil {
		return s.appendFor(ctx, it)
	}
	return s.submit(ctx, it)
}

// submit is Append for an item as it is stored.
func (s *Store) submit(ctx context.Context, it *Item) (Appended, error) {
	var h maphash.Hash
	h.SetSeed(laneSeed)
	_, _ = h.WriteString(it.Tenant)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(it.SessionKey)
	p := &pending{ctx: ctx, item: it, answer: make(chan answer, 1)}
	for i := range it.Events {
		p.size += len(it.Events[i].Body)
	}
	if err := s.lanes[h.Sum64()%uint64(len(s.lanes))].submit(p); err != nil {
		return Appended{}, err
	}
	select {
	case a := <-p.answer:
		return a.appended, a.err
	case <-ctx.Done():
		return Appended{}, ctx.Err()
	}
}

func (l *lane) submit(p *pending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return fmt.Errorf("%w: the node is shutting down", ErrUnavailable)
	}
	if len(l.queue) >= maxWaiting {
		return ErrTooBusy
	}
	l.queue = append(l.queue, p)
	if !l.busy {
		l.busy = true
		l.done = make(chan struct{})
		go l.drain()
	}
	return nil
}

// close refuses new items and waits for those that wait.
func (l *lane) close() {
	l.mu.Lock()
	l.shut = true
	done := l.done
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (l *lane) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.busy = false
			close(l.done)
			l.mu.Unlock()
			return
		}
		batch := l.take()
		l.mu.Unlock()
		if len(batch) > 0 {
			l.send(batch)
		}
	}
}

// take picks the next batch: items of one tenant and, where they may put a session
// into debt, of one threshold, in order of arrival. An item waits for the next
// batch when one before it in its session is conditional, when it is conditional
// itself, or when the two share a key.
func (l *lane) take() []*pending {
	tenant := l.queue[0].item.Tenant
	var batch []*pending
	rest := l.queue[:0:0]
	size, milli := 0, int64(0)
	sessions := make(map[string]*held, len(l.queue))
	for i, p := range l.queue {
		if p.ctx.Err() != nil {
			continue // its caller left before anything was sent
		}
		if len(batch) == maxBatchItems || (len(batch) > 0 && size+p.size > maxBatchBytes) {
			rest = append(rest, l.queue[i:]...)
			break
		}
		if p.item.Tenant != tenant {
			rest = append(rest, p)
			continue
		}
		own := int64(0)
		if p.item.Owes {
			own = l.store.owingAt(p.item)
		}
		h := sessions[p.item.SessionKey]
		admitted := h.admits(p.item) && (milli == 0 || own == 0 || own == milli)
		if h == nil {
			h = &held{}
			sessions[p.item.SessionKey] = h
		}
		if !admitted {
			h.closed = true // keep the session's order of arrival
			rest = append(rest, p)
			continue
		}
		milli = max(milli, own)
		h.add(p.item)
		batch = append(batch, p)
		size += p.size
	}
	l.queue = rest
	slices.SortStableFunc(batch, func(a, b *pending) int {
		return strings.Compare(a.item.SessionKey, b.item.SessionKey)
	})
	return batch
}

// held is what a batch already has of one session.
type held struct {
	closed bool
	keys   map[string]struct{}
}

func (h *held) admits(it *Item) bool {
	if h == nil {
		return true
	}
	if h.closed || it.conditional() {
		return false
	}
	for i := range it.Events {
		for _, k := range it.Events[i].Keys {
			if _, ok := h.keys[mapKey(k)]; ok {
				return false
			}
		}
	}
	return true
}

func (h *held) add(it *Item) {
	h.closed = it.conditional()
	for i := range it.Events {
		for _, k := range it.Events[i].Keys {
			if h.keys == nil {
				h.keys = make(map[string]struct{})
			}
			h.keys[mapKey(k)] = struct{}{}
		}
	}
}

func mapKey(k Key) string { return string(rune(k.Kind)) + string(k.Value) }

// send runs a batch. Sessions that another node holds right now go alone
// afterwards, so that one busy session does not hold up the others; a batch
// that fails on data is run item by item, so that one bad item harms no other.
func (l *lane) send(batch []*pending) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	items := make([]*Item, len(batch))
	for i, p := range batch {
		items[i] = p.item
	}
	outs, err := run(ctx, l.store.of(items[0].Tenant), l.store.params(items, len(batch) > 1))
	if err != nil {
		if len(batch) > 1 && isDataError(err) {
			for _, p := range batch {
				l.send([]*pending{p})
			}
			return
		}
		err = fmt.Errorf("append: %w", errUnavailable(err))
		for _, p := range batch {
			p.answer <- answer{err: err}
		}
		return
	}
	for i, p := range batch {
		if outs[i].verdict == verdictBusy {
			l.sendAlone(ctx, p)
			continue
		}
		a, err := outs[i].result(p.item)
		p.answer <- answer{appended: a, err: err}
	}
}

func (l *lane) sendAlone(ctx context.Context, p *pending) {
	outs, err := run(ctx, l.store.of(p.item.Tenant), l.store.params([]*Item{p.item}, false))
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: the session is locked", ErrUnavailable)
		}
		p.answer <- answer{err: fmt.Errorf("append: %w", errUnavailable(err))}
		return
	}
	a, err := outs[0].result(p.item)
	p.answer <- answer{appended: a, err: err}
}
