package main

import (
	"context"
	"fmt"
	"time"

	"github.com/engined/engined/internal/store"
)

// staleIndex is how long an event may wait for the search index; with a worker
// it is a second or two.
const staleIndex = time.Minute

// checkSearch looks how far the search index is behind the log.
func checkSearch(ctx context.Context, s *store.Store) check {
	ch := check{Name: "search"}
	events, oldest, err := s.SearchLag(ctx)
	switch {
	case err != nil:
		ch.Detail, ch.Fix = err.Error(), "look at the log of Postgres"
	case oldest > staleIndex:
		ch.Detail = fmt.Sprintf("the index is behind: %s, the oldest for %s", plural(events, "event"), oldest.Round(time.Second))
		ch.Fix = "does a worker run (engined worker, or serve --worker)? A transaction that stays open in this Postgres holds it back too: select pid, query, xact_start from pg_stat_activity order by xact_start"
	default:
		ch.OK, ch.Detail = true, "the index is "+plural(events, "event")+" behind"
	}
	return ch
}
