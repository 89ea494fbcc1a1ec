package retrieval

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// Reader is what a Searcher needs of the store.
type Reader interface {
	Session(ctx context.Context, tenant, key string) (store.Session, error)
	SearchState(ctx context.Context, tenant string, sids []uuid.UUID) (store.SearchIndexState, error)
	SearchPaths(ctx context.Context, tenant string, sids []uuid.UUID) (map[uuid.UUID]events.State, error)
	SearchCounts(ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, horizon int64, most int) ([]int64, error)
	SearchAll(ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, rarest int,
		average float64, before store.SearchMark, most, limit int) ([]store.SearchFound, error)
	SearchNewest(ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, rarest int,
		before store.SearchMark, limit int) ([]store.SearchFound, error)
	SearchAny(ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, weights []float64,
		counts []int64, parts int64, average float64, before store.SearchMark, most, limit int) (found []store.SearchFound, counted []int64, err error)
	SearchTexts(ctx context.Context, tenant string, f *store.SearchFilter, found []store.SearchFound, lookups [][]search.Lookup,
		partsEach int, maxBytes int64) ([]store.SearchPart, error)
	SearchNeighbours(ctx context.Context, tenant string, f *store.SearchFilter, found []store.SearchFound) ([]store.SearchNeighbour, error)
	SearchScan(ctx context.Context, tenant string, f *store.SearchFilter, filler string, before store.SearchMark, limit int) ([]store.SearchScanned, error)
	EventsWithin(ctx context.Context, tenant string, sid uuid.UUID, after int64, limit int, maxBytes int64) ([]events.Event, error)
}

var _ Reader = (*store.Store)(nil)

const (
	// MaxLimit is the most hits of a page.
	MaxLimit = 500
	// budget is how long a search looks before it answers with what it has.
	budget = 3 * time.Second
	// catchUp is how long a search first brings the index up to date, horizon how
	// long it waits for transactions that hold the feed back.
	catchUp = 2 * time.Second
	horizon = 300 * time.Millisecond
	// newest is how many of the matches of a query the rank looks at.
	newest = 20_000
	// blockRows (for a question questionRows), blockBytes and partsEach bound what
	// is ranked on the text at once.
	blockRows    = 300
	questionRows = 600
	blockBytes   = 12 << 20
	partsEach    = 24
)

// Searcher answers searches. Its methods may be called at the same time.
type Searcher struct {
	read    Reader
	indexer *Indexer
	gate    *gate
	now     func() time.Time
	// shelfBytes bounds the bodies that one search reads of an encrypted session.
	shelfBytes int64
}

// NewSearcher makes a Searcher. With an indexer, a search first indexes what
// the log has got since, for a moment.
func NewSearcher(read Reader, indexer *Indexer) *Searcher {
	return &Searcher{read: read, indexer: indexer, now: time.Now, shelfBytes: shelfBytes}
}

// Search answers with a page of hits. What is wrong with the request is an
// *contextengine.InvalidError.
func (s *Searcher) Search(ctx context.Context, r Request) (Answer, error) {
	r = withDefaults(r)
	p, err := r.plan()
	if err != nil {
		return Answer{}, err
	}
	leave, err := s.gate.enter(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	p.until = s.now().Add(budget)
	var at cursor
	if r.After != "" {
		if at, err = decode(&r); err != nil {
			return Answer{}, err
		}
	}
	var sids []uuid.UUID
	if p.filter.Sessions, sids, err = s.scopes(ctx, &r); err != nil {
		return Answer{}, err
	}
	state, err := s.read.SearchState(ctx, r.Tenant, sids)
	if err != nil {
		return Answer{}, err
	}
	if state.Sealed && r.SessionKey != "" && len(r.Scopes) == 0 {
		var h *shelf
		if h, state, err = s.shelve(ctx, &r, p, sids[len(sids)-1]); err != nil {
			return Answer{}, err
		}
		s = &Searcher{read: h, now: s.now}
	} else if state, err = s.fresh(ctx, r.Tenant, sids, state); err != nil {
		return Answer{}, err
	}
	out := Answer{Hits: []Hit{}, Current: !state.Behind, IndexedAt: state.IndexedAt, IndexedTo: state.Seq, Encrypted: state.Sealed}
	if r.SessionKey != "" && len(sids) == 0 {
		return out, nil // no such session has nothing to find
	}
	if r.After == "" {
		at = start(state)
	}
	switch {
	case r.Regex:
		err = s.scan(ctx, &r, p, at, &out)
	case r.Match == MatchAny:
		err = s.any(ctx, &r, p, at, &out)
	default:
		err = s.collect(ctx, &r, p, at, &out)
	}
	if err != nil {
		return Answer{}, err
	}
	for i := range out.Hits {
		out.Hits[i].Snippet = search.Cut(out.Hits[i].Text, out.Hits[i].spans)
	}
	return out, s.mark(ctx, &r, sids, out.Hits)
}

// withDefaults fills in what a request leaves open.
func withDefaults(r Request) Request {
	if r.Match == "" {
		r.Match = MatchAll
	}
	if r.Sort == "" {
		r.Sort = SortRelevance
	}
	if r.Limit <= 0 || r.Limit > MaxLimit {
		r.Limit = MaxLimit
	}
	return r
}

// scopes are the sessions to look at; none is all of the tenant's.
func (s *Searcher) scopes(ctx context.Context, r *Request) ([]store.SearchScope, []uuid.UUID, error) {
	scopes := r.Scopes
	if len(scopes) == 0 {
		if r.SessionKey == "" {
			return nil, nil, nil
		}
		sess, err := s.read.Session(ctx, r.Tenant, r.SessionKey)
		if errors.Is(err, contextengine.ErrUnknownSession) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		states, err := s.read.SearchPaths(ctx, r.Tenant, []uuid.UUID{sess.SID})
		if err != nil {
			return nil, nil, err
		}
		if r.ActiveOnly {
			scopes = PathScopes(sess.SID, states[sess.SID])
		} else {
			scopes = LogScopes(sess.SID, states[sess.SID])
		}
	}
	sids := make([]uuid.UUID, len(scopes))
	for i := range scopes {
		sids[i] = scopes[i].SID
	}
	return scopes, sids, nil
}

// fresh tells how far the index is, after it was given a moment to catch up.
func (s *Searcher) fresh(ctx context.Context, tenant string, sids []uuid.UUID, state store.SearchIndexState) (store.SearchIndexState, error) {
	if !state.Behind || s.indexer == nil {
		return state, nil
	}
	until := s.now().Add(catchUp)
	held := s.now().Add(horizon)
	for {
		n, err := s.indexer.Index(ctx, tenant, until.Sub(s.now()))
		if err != nil {
			return state, err
		}
		if state, err = s.read.SearchState(ctx, tenant, sids); err != nil || !state.Behind || !s.now().Before(until) {
			return state, err
		}
		if !state.Ready && !s.now().Before(held) {
			return state, nil
		}
		if n > 0 {
			continue
		}
		// Another one is at it, or an older transaction holds the feed back.
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// mark tells which hits are on a present path: that of the session that was
// asked for, which may have inherited them, else that of their own.
func (s *Searcher) mark(ctx context.Context, r *Request, sids []uuid.UUID, hits []Hit) error {
	if len(hits) == 0 {
		return nil
	}
	if r.SessionKey != "" && len(r.Scopes) == 0 {
		asked := sids[len(sids)-1]
		states, err := s.read.SearchPaths(ctx, r.Tenant, []uuid.UUID{asked})
		if err != nil {
			return err
		}
		scopes := PathScopes(asked, states[asked])
		for i := range hits {
			hits[i].Active = within(scopes, hits[i].SID, hits[i].Seq)
		}
		return nil
	}
	states, err := s.paths(ctx, r.Tenant, hits)
	if err != nil {
		return err
	}
	for i := range hits {
		state := states[hits[i].SID]
		hits[i].Active = state.OnPath(state.Line.Place(hits[i].Seq))
	}
	return nil
}

// paths reads the states of the sessions that hits are of.
func (s *Searcher) paths(ctx context.Context, tenant string, hits []Hit) (map[uuid.UUID]events.State, error) {
	var sids []uuid.UUID
	seen := map[uuid.UUID]struct{}{}
	for i := range hits {
		if _, ok := seen[hits[i].SID]; !ok {
			seen[hits[i].SID] = struct{}{}
			sids = append(sids, hits[i].SID)
		}
	}
	return s.read.SearchPaths(ctx, tenant, sids)
}

// only keeps the hits that are on the path of their session.
func (s *Searcher) only(ctx context.Context, r *Request, hits []Hit) ([]Hit, error) {
	if err := s.mark(ctx, r, nil, hits); err != nil {
		return nil, err
	}
	out := hits[:0]
	for i := range hits {
		if hits[i].Active {
			out = append(out, hits[i])
		}
	}
	return out, nil
}

// invalid refuses a query.
func invalid(err error) error {
	return &contextengine.InvalidError{Field: "q", Reason: err.Error()}
}

// checkText refuses what no query can be.
func checkText(q string) error {
	switch {
	case len(q) > search.MaxQuery:
		return invalid(search.ErrLongQuery)
	case !utf8.ValidString(q):
		return invalid(search.ErrNotUTF8)
	}
	return nil
}
