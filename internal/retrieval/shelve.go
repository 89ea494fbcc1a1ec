package retrieval

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

const (
	// shelfBytes bounds the bodies that one search reads of an encrypted session,
	// the newest; shelfRows are read at once.
	shelfBytes = 32 << 20
	shelfRows  = 500
	// docParts is the room for the parts of one message among docs.
	docParts = 1 << 22
)

// shelve reads what an encrypted session said and inherited, newest first, until
// the bytes or the time are used up. The state is Sealed where that left some out.
func (s *Searcher) shelve(ctx context.Context, r *Request, p *plan, asked uuid.UUID) (*shelf, store.SearchIndexState, error) {
	sess, err := s.read.Session(ctx, r.Tenant, r.SessionKey)
	if err == nil && sess.SID != asked {
		err = contextengine.ErrUnknownSession // erased meanwhile, and begun anew
	}
	if err != nil {
		return nil, store.SearchIndexState{}, err
	}
	states, err := s.read.SearchPaths(ctx, r.Tenant, []uuid.UUID{asked})
	if err != nil {
		return nil, store.SearchIndexState{}, err
	}
	keys, base := map[uuid.UUID]string{asked: r.SessionKey}, map[uuid.UUID]int64{asked: states[asked].Line.Base()}
	for _, seg := range states[asked].Line {
		keys[uuid.UUID(seg.SID)], base[uuid.UUID(seg.SID)] = seg.SessionKey, seg.After
	}
	room, whole := s.shelfBytes, true
	var shelves [][]store.SearchPart
	for _, scope := range slices.Backward(p.filter.Sessions) {
		var log []events.Event
		if log, whole, err = s.newest(ctx, r.Tenant, scope, sess.Head, p.until, &room); err != nil {
			return nil, store.SearchIndexState{}, err
		}
		shelves = append(shelves, partsOfLog(scope.SID, log, keys[scope.SID], base[scope.SID]))
		if !whole {
			break
		}
	}
	slices.Reverse(shelves)
	h := newShelf(s.read, slices.Concat(shelves...), p.lookups)
	state := h.state()
	state.Seq, state.Sealed = sess.Head, !whole
	return h, state, nil
}

// newest reads a log in pages from its end on, as far as the scope reaches back;
// head is the end of one that has none. What it answers with is in the order of
// the log again, and takes its bytes from room.
func (s *Searcher) newest(
	ctx context.Context, tenant string, scope store.SearchScope, head int64, until time.Time, room *int64,
) (log []events.Event, whole bool, err error) {
	first, last := reach(scope)
	if last == events.Open {
		last = head
	}
	var pages [][]events.Event
	for last >= first {
		if *room <= 0 || !s.now().Before(until) {
			break
		}
		from := max(first, last-shelfRows+1)
		var page []events.Event
		for at := from - 1; at < last; {
			more, err := s.read.EventsWithin(ctx, tenant, scope.SID, at, int(last-at), runBytes)
			if err != nil {
				return nil, false, err
			}
			if len(more) == 0 {
				break
			}
			page, at = append(page, more...), more[len(more)-1].Seq
		}
		for i := range page {
			*room -= int64(len(page[i].Body))
		}
		pages, last = append(pages, page), from-1
	}
	slices.Reverse(pages)
	return slices.Concat(pages...), last < first, nil
}

// reach is the first and last seq of a scope.
func reach(scope store.SearchScope) (first, last int64) {
	if len(scope.Path) == 0 {
		return 1, events.Open
	}
	first, last = scope.Path[0].From, scope.Path[0].To
	for _, r := range scope.Path[1:] {
		first, last = min(first, r.From), max(last, r.To)
	}
	return first, last
}

// partsOfLog makes the parts of a log, in its order. Their docs follow from the
// places of the messages, so they are the same at each page of a search.
func partsOfLog(sid uuid.UUID, log []events.Event, key string, base int64) []store.SearchPart {
	var out []store.SearchPart
	tools := map[string]string{}
	for i := range log {
		e := store.FeedEvent{SID: sid, SessionKey: key, Event: log[i]}
		parts, err := extract(&e, func(id string) string { return tools[id] })
		if err != nil {
			continue // what cannot be read is no text; the rest is
		}
		for p := range parts {
			parts[p].SessionKey = key
			parts[p].Doc = (base+e.Seq)*docParts + int64(min(p, docParts-1))
		}
		out = append(out, parts...)
		if e.Type == events.MessageAppended && e.Facts.Role == message.Assistant {
			noteCalls(tools, e.Body)
		}
	}
	return out
}
