package retrieval

import (
	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
)

// LogScopes are all of a session's log and, of each ancestor, the part that it
// inherited; the session itself is the last.
func LogScopes(sid uuid.UUID, state events.State) []store.SearchScope {
	return scopesOf(sid, state, []events.Range{{From: 1, To: events.Open}})
}

// PathScopes are what of LogScopes is on the session's present path.
func PathScopes(sid uuid.UUID, state events.State) []store.SearchScope {
	return scopesOf(sid, state, state.Path)
}

// PlaceScopes are what of a session's line stands at some places.
func PlaceScopes(sid uuid.UUID, state events.State, places []events.Range) []store.SearchScope {
	return scopesOf(sid, state, places)
}

// scopesOf turns ranges of places into ranges of seqs of the sessions that have
// them. Of an erased ancestor there is nothing.
func scopesOf(sid uuid.UUID, state events.State, places []events.Range) []store.SearchScope {
	var out []store.SearchScope
	for _, seg := range state.Line {
		if seg.SID == (events.SID{}) {
			continue
		}
		if path := shift(places, seg.After, seg.To); len(path) > 0 {
			out = append(out, store.SearchScope{SID: uuid.UUID(seg.SID), Path: path})
		}
	}
	own := shift(places, state.Line.Base(), events.Open)
	if len(own) == 0 {
		own = []events.Range{{From: events.Open, To: events.Open}} // nothing
	}
	return append(out, store.SearchScope{SID: sid, Path: own})
}

// shift cuts ranges of places to (after, to] and counts from after.
func shift(places []events.Range, after, to int64) []events.Range {
	var out []events.Range
	for _, r := range places {
		from, last := max(r.From, after+1), min(r.To, to)
		if from > last {
			continue
		}
		if last != events.Open {
			last -= after
		}
		out = append(out, events.Range{From: from - after, To: last})
	}
	return out
}

func within(scopes []store.SearchScope, sid uuid.UUID, seq int64) bool {
	for _, s := range scopes {
		if s.SID != sid {
			continue
		}
		for _, r := range s.Path {
			if r.Contains(seq) {
				return true
			}
		}
	}
	return false
}
