package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// Two nodes write to the same sessions while a reader follows the feed: no seq
// is missing or doubled, and the feed shows every session in seq order.
func TestFeedShowsEverySessionInSeqOrderWhileNodesRace(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openURL(t, url), openURL(t, url)}
	const writers, appends, sessions = 12, 40, 5

	writing, stop := context.WithCancel(t.Context())
	seen := make(map[string]int64)
	var read errgroup.Group
	read.Go(func() error {
		var at store.Cursor
		follow := func() (int, error) {
			page, err := nodes[0].FeedWithin(t.Context(), tenant, at, 100, 1<<20)
			if err != nil {
				return 0, err
			}
			for _, e := range page {
				if e.Seq != seen[e.SessionKey]+1 {
					return 0, fmt.Errorf("feed of %s: seq %d after %d", e.SessionKey, e.Seq, seen[e.SessionKey])
				}
				seen[e.SessionKey], at = e.Seq, e.Cursor
			}
			return len(page), nil
		}
		for writing.Err() == nil {
			if _, err := follow(); err != nil {
				return err
			}
		}
		// Other tests' transactions hold the horizon back: read until all is there.
		for total := int64(0); total < writers*appends*2; {
			if _, err := follow(); err != nil {
				return err
			}
			total = 0
			for _, n := range seen {
				total += n
			}
		}
		return nil
	})

	var write errgroup.Group
	for w := range writers {
		write.Go(func() error {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range appends {
				k := fmt.Sprintf("s%d", r.IntN(sessions))
				_, err := nodes[r.IntN(2)].Append(t.Context(), item(k, msg("a", 1, fmt.Sprint(w, "/", i)), msg("b", 1)))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := write.Wait(); err != nil {
		t.Error(err)
	}
	stop()
	if err := read.Wait(); err != nil {
		t.Error(err)
	}
	for k, head := range seen {
		evs := log(t, nodes[1], k)
		if int64(len(evs)) != head {
			t.Errorf("%s: %d events, head %d", k, len(evs), head)
		}
		for i, e := range evs {
			if e.Seq != int64(i+1) {
				t.Fatalf("%s: seq %d at place %d", k, e.Seq, i+1)
			}
		}
	}
}

func TestConcurrentRetriesStoreOneEvent(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openURL(t, url), openURL(t, url)}
	var wg errgroup.Group
	for i := range 30 {
		wg.Go(func() error {
			a, err := nodes[i%2].Append(t.Context(), item("k", msg("same", 1, "key")))
			if err == nil && a.Seqs[0] != 1 {
				err = fmt.Errorf("seq %d", a.Seqs[0])
			}
			return err
		})
	}
	if err := wg.Wait(); err != nil {
		t.Error(err)
	}
	if n := len(log(t, nodes[0], "k")); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestOfTwoWritersWithOneExpectationOneWins(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openURL(t, url), openURL(t, url)}
	for round := range 20 {
		head := int64(2 * round)
		var mu sync.Mutex
		wins := 0
		var wg errgroup.Group
		for i := range 6 {
			wg.Go(func() error {
				it := item("k", msg(fmt.Sprint(round, i), 1), msg("b", 1))
				it.ExpectedHead = &head
				_, err := nodes[i%2].Append(t.Context(), it)
				if _, ok := errors.AsType[*contextengine.StaleHeadError](err); ok {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				wins++
				return err
			})
		}
		if err := wg.Wait(); err != nil {
			t.Fatal(err)
		}
		if wins != 1 {
			t.Fatalf("round %d: %d writers won", round, wins)
		}
	}
}

func TestEpochStepIsACompareAndSwap(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	nodes := []*store.Store{openURL(t, url), openURL(t, url)}
	a := mustAppend(t, nodes[0], item("k", msg("a", 10), msg("b", 20)))
	if err := nodes[0].PutDraft(t.Context(), tenant, a.SID, []byte("d"), []byte("draft")); err != nil {
		t.Fatal(err)
	}
	build := func(cur store.Session, state events.State, first int64) (store.EpochStep, error) {
		state.Live = []events.LiveSummary{{Seq: first, Level: 1, Tokens: 3, Covers: []events.Range{{From: 1, To: 1}}, CoveredTokens: 10}}
		return store.EpochStep{
			Events: []store.NewEvent{{Type: events.SummaryCreated, Body: []byte("{}")}, {Type: events.EpochRotated, Body: []byte("{}")}},
			State:  state, LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, PaysDebt: true,
		}, nil
	}
	var mu sync.Mutex
	wins := 0
	var wg errgroup.Group
	for i := range 6 {
		wg.Go(func() error {
			_, err := nodes[i%2].StepEpoch(t.Context(), tenant, "k", 1, build)
			if _, ok := errors.AsType[*contextengine.EpochConflictError](err); ok {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			wins++
			return err
		})
	}
	if err := wg.Wait(); err != nil {
		t.Fatal(err)
	}
	if wins != 1 {
		t.Errorf("%d steps won", wins)
	}
	v, err := nodes[1].View(t.Context(), tenant, "k", uuid.Nil, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if v.Epoch != 2 || v.State.Epoch != 2 || v.Head != 4 || v.HostHead != 2 || v.LiveTokens() != 23 {
		t.Errorf("after the step: %+v live %d", v.Session, v.LiveTokens())
	}
	if _, ok, err := nodes[0].Draft(t.Context(), tenant, a.SID, []byte("d")); err != nil || ok {
		t.Errorf("draft still there: %v %v", ok, err)
	}
	before, err := nodes[0].StateAsOf(t.Context(), tenant, a.SID, 3)
	if err != nil || before.Epoch != 1 {
		t.Errorf("state as of 3: %+v %v", before, err)
	}
}

func TestManyNodesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"an empty database": testdb.Empty(t), "one of an earlier release": earlier(t, "00008")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg errgroup.Group
			var migrated atomic.Int64
			for range 5 {
				wg.Go(func() error {
					n, err := store.Migrate(t.Context(), url, nil)
					if n > 0 {
						migrated.Add(1)
					}
					return err
				})
			}
			if err := wg.Wait(); err != nil {
				t.Fatal(err)
			}
			if n := migrated.Load(); n != 1 {
				t.Errorf("%d of them migrated", n)
			}
			mustAppend(t, openURL(t, url), item("old", msg("a", 1)))
		})
	}
}
