package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/engined/engined/internal/store"
)

// TestOneWorkerProbesAHalfOpenGate among many that ask at the same time.
func TestOneWorkerProbesAHalfOpenGate(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := store.GatePolicy{Failures: 1, Pause: time.Millisecond}
	fail := func() {
		t.Helper()
		if err := s.LeaveGate(t.Context(), tenant, "m", store.Spend{Calls: 1}, &store.GateFailure{Fault: "down", Err: "500"}, p); err != nil {
			t.Fatal(err)
		}
	}
	enter := func() bool {
		st, err := s.EnterGate(t.Context(), tenant, "m", store.SpendLimits{}, p)
		if err != nil {
			t.Error(err)
		}
		return st.Open
	}
	probes := func() int32 {
		var n atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if enter() {
					n.Add(1)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	halfOpen := func() {
		t.Helper()
		for {
			states, err := s.SummarizerStates(t.Context(), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if states[0].State == "half-open" {
				return
			}
		}
	}
	if !enter() {
		t.Fatal("a gate that nobody failed at is shut")
	}
	fail()
	halfOpen()
	if n := probes(); n != 1 {
		t.Errorf("%d probes", n)
	}
	// Who probed left before the answer: another one may.
	if err := s.LeaveGate(t.Context(), tenant, "m", store.Spend{}, &store.GateFailure{Abandoned: true}, p); err != nil {
		t.Fatal(err)
	}
	if n := probes(); n != 1 {
		t.Errorf("%d probes after one that was abandoned", n)
	}
	if err := s.LeaveGate(t.Context(), tenant, "m", store.Spend{Calls: 1, CostMicros: 5}, nil, p); err != nil {
		t.Fatal(err)
	}
	if n := probes(); n != 8 {
		t.Errorf("closed, and %d of 8 may enter", n)
	}
	if st, err := s.EnterGate(t.Context(), tenant, "m", store.SpendLimits{SummarizerMicros: 5}, p); err != nil || st.Open || st.Until.Before(time.Now().Add(-time.Minute)) {
		t.Errorf("over the limit: %+v, %v", st, err)
	}
	totals, err := s.SummarizerTotals(t.Context())
	if err != nil || len(totals) != 1 || totals[0].Today.Calls != 2 || totals[0].Today.CostMicros != 5 || totals[0].Open != 0 {
		t.Errorf("%+v, %v", totals, err)
	}
}
