package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/engined/engined/internal/store/db"
)

// ErrFeedEra: the cursor is of an era of the feed that is over. Places of
// different eras can't be compared: its reader starts anew.
var ErrFeedEra = errors.New("the cursor is of an earlier era of the feed")

// ErrFeedClosed: the database is in another cluster than the one whose
// transaction ids order the feed, so no order is safe until an era is opened.
var ErrFeedClosed = errors.New("the feed is closed: the database was moved to another cluster")

// FeedEra is the newest era of the feed.
type FeedEra struct {
	Era int64
	// Cluster is whose transaction ids order it, Here the cluster that answers;
	// empty where a server does not tell.
	Cluster, Here string
	OpenedAt      time.Time
}

// Open reports whether the feed's order holds here.
func (e FeedEra) Open() bool { return e.Cluster == e.Here || e.Cluster == "" || e.Here == "" }

// FeedEra reads it.
func (s *Store) FeedEra(ctx context.Context) (FeedEra, error) {
	r, err := s.everyone.FeedEra(ctx)
	if err != nil {
		return FeedEra{}, fmt.Errorf("feed: %w", errUnavailable(err))
	}
	return FeedEra{Era: r.Era, Cluster: r.Cluster, Here: r.Here, OpenedAt: r.OpenedAt}, nil
}

// eraFor is how long an answer to which era it is holds. A database that is
// replaced breaks its connections, and a new one asks at once.
const eraFor = 10 * time.Second

// eraGate knows the era without asking for it at each call.
type eraGate struct {
	mu    sync.Mutex
	era   FeedEra
	until time.Time
}

// forget has the next reader ask.
func (g *eraGate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Time{}
}

// era is the open era; ErrFeedClosed where there is none.
func (s *Store) era(ctx context.Context) (int64, error) {
	s.eras.mu.Lock()
	e, fresh := s.eras.era, time.Now().Before(s.eras.until)
	s.eras.mu.Unlock()
	if !fresh {
		asked := time.Now()
		now, err := s.FeedEra(ctx)
		if err != nil {
			return 0, err
		}
		s.eras.mu.Lock()
		if now.Open() != e.Open() || e.Era == 0 && !now.Open() {
			s.log.Warn("the feed's cluster has changed", "era", now.Era, "open", now.Open(), "of", now.Cluster, "here", now.Here)
		}
		s.eras.era, s.eras.until = now, asked.Add(eraFor)
		s.eras.mu.Unlock()
		e = now
	}
	if !e.Open() {
		return 0, ErrFeedClosed
	}
	return e.Era, nil
}

// eraOf is the open era, if the cursor is of it. A beginning is one in any era.
func (s *Store) eraOf(ctx context.Context, after Cursor) (int64, error) {
	era, err := s.era(ctx)
	if err == nil && after.Era != 0 && after.Era != era && (after.XID != 0 || after.Position != 0) {
		// Another node's opening is known here a little later.
		s.eras.forget()
		if era, err = s.era(ctx); err == nil && after.Era != era {
			err = ErrFeedEra
		}
	}
	return era, err
}

// inEra is a reader's name in an era: a place of an era that is over can't get
// in the way of those of the next.
func inEra(name string, era int64) string {
	if era <= 1 {
		return name
	}
	return name + "@" + strconv.FormatInt(era, 10)
}

// agePage is how many events one statement of an opening writes.
const agePage = 5000

// OpenEra begins a new era of the feed in this cluster: what is in the log comes
// first, in the order of positions, then what is written from now on. Readers of
// the feed start anew; the relay, search and the counts of tenants do so by
// themselves. Appends go on meanwhile, and a run that was broken off is repeated.
// tell is called with the sessions that are done.
func (s *Store) OpenEra(ctx context.Context, tell func(sessions int64)) (FeedEra, error) {
	var newest int64
	err := s.withinAll(ctx, func(q *db.Queries) error {
		// Behind this lock no position is given out that is not committed.
		if err := q.LockEvents(ctx); err != nil {
			return err
		}
		var err error
		newest, err = q.NewestPosition(ctx)
		return err
	})
	if err != nil {
		return FeedEra{}, fmt.Errorf("feed: %w", errUnavailable(err))
	}
	if err := s.ageEvents(ctx, newest, tell); err != nil {
		return FeedEra{}, fmt.Errorf("feed: %w", errUnavailable(err))
	}
	err = s.withinAll(ctx, func(q *db.Queries) error {
		if err := q.LockEras(ctx); err != nil {
			return err
		}
		era, err := q.OpenEra(ctx, db.OpenEraParams{Position: newest})
		if err != nil {
			return err
		}
		for _, step := range []func(context.Context) error{q.ForgetCheckpoints, q.RecountBytes, q.ResumSearch} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		// Before every place, and another beginning than the last one was.
		return q.RestartSearch(ctx, db.RestartSearchParams{Position: -era})
	})
	if err != nil {
		return FeedEra{}, fmt.Errorf("feed: %w", errUnavailable(err))
	}
	s.eras.forget()
	return s.FeedEra(ctx)
}

// ageEvents makes every event up to a position older than the era.
func (s *Store) ageEvents(ctx context.Context, newest int64, tell func(int64)) error {
	const page = 200
	done := int64(0)
	for after, more := (SessionID{}), true; more; {
		ids, err := s.SessionsAfter(ctx, after, page)
		if err != nil {
			return err
		}
		for _, id := range ids {
			after = id
			cur, err := s.SessionBySID(ctx, id.Tenant, id.SID)
			if isUnknown(err) {
				continue // erased meanwhile
			}
			if err != nil {
				return err
			}
			for from := int64(0); from < cur.Head; from += agePage {
				_, err := s.of(id.Tenant).AgeEvents(ctx, db.AgeEventsParams{TenantID: id.Tenant, SID: id.SID, After: from, Upto: from + agePage, Newest: newest})
				if err != nil {
					return err
				}
			}
			done++
		}
		if tell != nil {
			tell(done)
		}
		more = len(ids) == page
	}
	return nil
}
