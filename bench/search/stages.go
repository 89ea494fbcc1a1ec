package main

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/retrieval"
	"github.com/engined/engined/internal/search"
	"github.com/engined/engined/internal/store"
)

// stages is a Reader that knows how long each kind of read took.
type stages struct {
	retrieval.Reader
	mu    sync.Mutex
	took  map[string]time.Duration
	order []string
}

func (s *stages) spent(stage string, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.took[stage]; !known {
		s.order = append(s.order, stage)
	}
	s.took[stage] += time.Since(began)
}

func (s *stages) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.order = map[string]time.Duration{}, nil
}

func (s *stages) Session(ctx context.Context, tenant, key string) (store.Session, error) {
	defer s.spent("session", time.Now())
	return s.Reader.Session(ctx, tenant, key)
}

func (s *stages) SearchState(ctx context.Context, tenant string, sids []uuid.UUID) (store.SearchIndexState, error) {
	defer s.spent("state", time.Now())
	return s.Reader.SearchState(ctx, tenant, sids)
}

func (s *stages) SearchPaths(ctx context.Context, tenant string, sids []uuid.UUID) (map[uuid.UUID]events.State, error) {
	defer s.spent("paths", time.Now())
	return s.Reader.SearchPaths(ctx, tenant, sids)
}

func (s *stages) SearchCounts(ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, horizon int64, most int) ([]int64, error) {
	defer s.spent("counts", time.Now())
	return s.Reader.SearchCounts(ctx, tenant, f, lookups, horizon, most)
}

func (s *stages) SearchAll(
	ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, rarest int,
	average float64, before store.SearchMark, most, limit int,
) ([]store.SearchFound, error) {
	defer s.spent("all", time.Now())
	return s.Reader.SearchAll(ctx, tenant, f, lookups, rarest, average, before, most, limit)
}

func (s *stages) SearchNewest(
	ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, rarest int, before store.SearchMark, limit int,
) ([]store.SearchFound, error) {
	defer s.spent("newest", time.Now())
	return s.Reader.SearchNewest(ctx, tenant, f, lookups, rarest, before, limit)
}

func (s *stages) SearchAny(
	ctx context.Context, tenant string, f *store.SearchFilter, lookups [][]search.Lookup, weights []float64,
	counts []int64, parts int64, average float64, before store.SearchMark, most, limit int,
) ([]store.SearchFound, []int64, error) {
	defer s.spent("any", time.Now())
	return s.Reader.SearchAny(ctx, tenant, f, lookups, weights, counts, parts, average, before, most, limit)
}

func (s *stages) SearchTexts(
	ctx context.Context, tenant string, f *store.SearchFilter, found []store.SearchFound, lookups [][]search.Lookup, partsEach int, maxBytes int64,
) ([]store.SearchPart, error) {
	defer s.spent("texts", time.Now())
	return s.Reader.SearchTexts(ctx, tenant, f, found, lookups, partsEach, maxBytes)
}

func (s *stages) SearchNeighbours(ctx context.Context, tenant string, f *store.SearchFilter, found []store.SearchFound) ([]store.SearchNeighbour, error) {
	defer s.spent("neighbours", time.Now())
	return s.Reader.SearchNeighbours(ctx, tenant, f, found)
}

func (s *stages) SearchScan(ctx context.Context, tenant string, f *store.SearchFilter, filler string, before store.SearchMark, limit int) ([]store.SearchScanned, error) {
	defer s.spent("scan", time.Now())
	return s.Reader.SearchScan(ctx, tenant, f, filler, before, limit)
}
