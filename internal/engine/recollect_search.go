package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/window"
)

// errBehind: the index has not all of what could be recalled.
var errBehind = errors.New("the index is behind")

// search chooses passages: the best matches, as many as fit, in the log's order.
func (r *recollector) search(
	ctx context.Context, w *windows, s store.Session, m *material, in window.Input, plan window.Plan, q question, room int,
) ([]cite, error) {
	places := recallable(m, in, plan)
	if len(places) == 0 {
		return nil, nil
	}
	texts := make([]string, len(q.query.Units))
	for i, u := range q.query.Units {
		texts[i] = u.Raw
	}
	found, err := r.cfg.Passages.Search(ctx, retrieval.Request{
		Tenant: s.Tenant, Query: strings.Join(texts, " "), Match: retrieval.MatchAny, Scopes: retrieval.PlaceScopes(m.sid, m.state, places),
		Kinds: []store.SearchKind{store.SearchMessage, store.SearchResult}, Without: message.Hidden | message.Heartbeat,
		Limit: 3 * maxPassages,
	})
	if err != nil {
		return nil, err
	}
	if own := places[len(places)-1].To - m.state.Line.Base(); own > 0 && !found.Current && found.IndexedTo < own {
		return nil, errBehind
	}
	wants := search.Wants(q.query)
	var out []quoted
	for hits := range slices.Chunk(found.Hits, maxPassages) {
		more, err := w.line(s, m).cite(ctx, hits, wants)
		if err != nil {
			return nil, err
		}
		for _, c := range more {
			if next := inOrder(out, c); len(next) <= maxPassages && q.fits(s.Dialect, next, room) {
				out = next
			}
		}
	}
	cites := make([]cite, len(out))
	for i := range out {
		cites[i] = out[i].cite
	}
	return cites, nil
}
