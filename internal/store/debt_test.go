package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// owe appends a turn of so many tokens under a budget of 1000.
func owe(t *testing.T, s *store.Store, tokens int) store.Debt {
	t.Helper()
	it := item("k", msg("a", tokens))
	it.Budget, it.Owes = 1000, true
	a := mustAppend(t, s, it)
	d, ok, err := s.DebtOf(t.Context(), tenant, a.SID)
	if err != nil || !ok {
		t.Fatalf("no debt after %d tokens: %v", tokens, err)
	}
	return d
}

func TestADebtThatGrewIsNotSettled(t *testing.T) {
	t.Parallel()
	s := open(t)
	seen := owe(t, s, 900)
	now := owe(t, s, 1)
	for _, tc := range []struct {
		of    store.Debt
		stays bool
	}{{seen, true}, {now, false}} {
		if err := s.SettleDebt(t.Context(), tc.of); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.DebtOf(t.Context(), tenant, tc.of.SID); err != nil || ok != tc.stays {
			t.Errorf("settled with %d of %d tokens: owes %v, %v", tc.of.Tokens, now.Tokens, ok, err)
		}
	}
}

func TestAStepPaysWhatItBringsUnderTheThreshold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		covered int64
		hold    int64 // above the leaf: no compaction is wanted
		owes    bool
	}{
		"enough":            {covered: 500},
		"not enough":        {covered: 100, owes: true},
		"held after undoes": {covered: 100, hold: 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			d := owe(t, s, 1000)
			_, err := s.StepEpoch(t.Context(), tenant, "k", 1, func(cur store.Session, state events.State, first int64) (store.EpochStep, error) {
				state.Live = []events.LiveSummary{{Seq: first, Level: 1, Tokens: 10, Covers: []events.Range{{From: 1, To: 1}}, CoveredTokens: tc.covered}}
				return store.EpochStep{
					Events: []store.NewEvent{{Type: events.SummaryCreated, Body: []byte("{}")}, {Type: events.EpochRotated, Body: []byte("{}")}},
					State:  state, LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset, HoldOffset: tc.hold, PaysDebt: true,
				}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			left, ok, err := s.DebtOf(t.Context(), tenant, d.SID)
			if err != nil || ok != tc.owes {
				t.Fatalf("owes %v, %v", ok, err)
			}
			if ok && (left.Epoch != 2 || left.Tokens != 910 || left.Attempts != 0) {
				t.Errorf("carried as %+v", left)
			}
		})
	}
}

func TestCompactionsAreCountedSinceTheReset(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, item("k", msg("{}", 1)))
	row, err := s.Session(t.Context(), tenant, "k")
	if err != nil {
		t.Fatal(err)
	}
	compacted := store.NewEvent{Type: events.EpochRotated, Body: []byte(`{"base":1,"epoch":2,"cause":"compaction","live":[]}`)}
	undone := store.NewEvent{Type: events.EpochRotated, Body: []byte(`{"base":1,"epoch":3,"cause":"undo","live":[]}`)}
	reset := store.NewEvent{Type: events.SessionReset, Body: []byte(`{}`)}
	for i, step := range []struct {
		event store.NewEvent
		want  int64
	}{{compacted, 1}, {compacted, 2}, {undone, 2}, {reset, 0}, {undone, 0}, {compacted, 1}, {reset, 0}} {
		_, err := s.StepEpoch(t.Context(), tenant, "k", int64(i+1), func(cur store.Session, state events.State, _ int64) (store.EpochStep, error) {
			return store.EpochStep{Events: []store.NewEvent{step.event}, State: state, LeafSeq: cur.LeafSeq, LeafOffset: cur.LeafOffset}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.CompactionCount(t.Context(), tenant, row.SID); err != nil || got != step.want {
			t.Errorf("step %d: %d compactions, want %d (%v)", i, got, step.want, err)
		}
	}
}

// TestDebtFollowsTheModelsThreshold also puts turns of models with different
// thresholds into the log at one time.
func TestDebtFollowsTheModelsThreshold(t *testing.T) {
	t.Parallel()
	s := openConfig(t, store.Config{URL: testdb.New(t), Lanes: 1, DebtMilliOf: func(model string) int64 {
		return map[string]int64{"early": 500, "late": 950}[model]
	}})
	type turn struct {
		model  string
		tokens int
		owes   bool
	}
	turns := []turn{
		{"", 840, false},
		{"", 860, true},
		{"other", 840, false},
		{"other", 860, true},
		{"early", 490, false},
		{"early", 510, true},
		{"late", 940, false},
		{"late", 960, true},
	}
	var wg sync.WaitGroup
	for i, turn := range turns {
		for n := range 4 {
			wg.Go(func() {
				it := item(fmt.Sprint("k", i, "-", n), msg("a", turn.tokens))
				it.Budget, it.Owes, it.Model = 1000, true, turn.model
				a, err := s.Append(t.Context(), it)
				if err != nil || a.Debt != turn.owes {
					t.Errorf("%+v: debt %v, %v", turn, a.Debt, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestTheNewestAttemptsAreKept: what fails every few minutes for months fills no
// table.
func TestTheNewestAttemptsAreKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	a := mustAppend(t, s, item("s", msg("{}", 1)))
	other := mustAppend(t, s, item("other", msg("{}", 1)))
	for i := range 103 {
		if err := s.RecordAttempt(t.Context(), store.Attempt{Tenant: tenant, SID: a.SID, Epoch: int64(i), Outcome: "failed", StartedAt: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := s.RecordAttempt(t.Context(), store.Attempt{Tenant: tenant, SID: other.SID, Outcome: "failed", StartedAt: time.Unix(0, 0)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept, err := s.Attempts(t.Context(), tenant, a.SID, 1000)
	if err != nil || len(kept) != 100 || kept[0].Epoch != 102 || kept[99].Epoch != 3 {
		t.Errorf("%d attempts, %v", len(kept), err)
	}
	if kept, err := s.Attempts(t.Context(), tenant, other.SID, 1000); err != nil || len(kept) != 1 {
		t.Errorf("of the other session %d attempts, %v", len(kept), err)
	}
}
