package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store"
)

func core(r *engine.Registration) { r.Owner = engine.CoreOwner }

// TestAbortedCallsPropagateAtOnce: the caller is let go and nobody is blamed,
// whatever the engine does about it.
func TestAbortedCallsPropagateAtOnce(t *testing.T) {
	t.Parallel()
	reason := errors.New("the user pressed stop")
	for how, act := range map[string]func(ctx context.Context, free chan struct{}) error{
		"heeds it":           func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"answers the reason": func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); return context.Cause(ctx) },
		"fails otherwise":    func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); return errors.New("connection closed") },
		"panics":             func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); panic("no context") },
		"heeds nothing":      func(_ context.Context, free chan struct{}) error { <-free; return nil },
	} {
		for _, c := range guardedCalls() {
			t.Run(how+" in "+string(c.op), func(t *testing.T) {
				t.Parallel()
				free := make(chan struct{})
				e := whole("acme")
				d := deskOf(t, e)
				ctx, cancel := context.WithCancelCause(t.Context())
				e.does(func(ctx context.Context, _ engine.Operation) error {
					cancel(reason)
					return act(ctx, free)
				})
				_, err := c.do(ctx, d.slot)
				if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
					t.Errorf("answered %v", err)
				}
				close(free)
				d.noneAside(t)
				if calls := d.fallback.calls(); len(calls) != 0 {
					t.Errorf("the default engine answers an aborted call: %v", calls)
				}
			})
		}
	}
}

func TestCallsAbortedBeforehandReachNoEngine(t *testing.T) {
	t.Parallel()
	e := whole("acme")
	d := deskOf(t, e)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("stop")
	cancel(reason)
	for _, c := range guardedCalls() {
		if _, err := c.do(ctx, d.slot); !errors.Is(err, reason) {
			t.Errorf("%s: %v", c.op, err)
		}
	}
	if len(e.calls()) != 0 || len(d.fallback.calls()) != 0 {
		t.Errorf("called %v and %v", e.calls(), d.fallback.calls())
	}
	d.noneAside(t)
}

func TestTheCallersOwnDeadlineIsAnAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := whole("acme")
		e.does(func(ctx context.Context, _ engine.Operation) error { <-ctx.Done(); return ctx.Err() })
		d := deskOf(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.slot.Assemble(ctx, contextengine.AssembleParams{Session: on("s")})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answered %v", err)
		}
		d.noneAside(t)
	})
}

func TestDeadlinesOfOperations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own  engine.Deadlines
		op   engine.Operation
		want time.Duration
	}{
		"a call":                    {engine.Deadlines{}, engine.OpAssemble, engine.DefaultCallDeadline},
		"maintenance":               {engine.Deadlines{}, engine.OpMaintain, engine.DefaultCallDeadline},
		"a compaction":              {engine.Deadlines{}, engine.OpCompact, 180 * time.Second},
		"the engine's own":          {engine.Deadlines{Call: 3 * time.Second}, engine.OpAssemble, 3 * time.Second},
		"which is no compaction's":  {engine.Deadlines{Call: 3 * time.Second}, engine.OpCompact, 180 * time.Second},
		"one operation's":           {engine.Deadlines{Call: time.Second, Of: map[engine.Operation]time.Duration{engine.OpCompact: time.Minute}}, engine.OpCompact, time.Minute},
		"none is not without limit": {engine.Deadlines{Call: -1, Of: map[engine.Operation]time.Duration{engine.OpCompact: 0}}, engine.OpCompact, 180 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := whole("acme")
				e.does(func(ctx context.Context, _ engine.Operation) error { <-ctx.Done(); return ctx.Err() })
				d := deskOf(t, e, func(r *engine.Registration) { r.Deadlines = tc.own })
				start := time.Now()
				for _, c := range guardedCalls() {
					if c.op == tc.op {
						_, _ = c.do(t.Context(), d.slot) // the quarantine tells
					}
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("given up after %s, want %s", took, tc.want)
				}
				if q := d.aside(t); q.Operation != tc.op {
					t.Errorf("%+v", q)
				}
			})
		})
	}
}

// TestNobodysFaultIsNoQuarantine: the caller's faults and Postgres being away
// pass through as they are.
func TestNobodysFaultIsNoQuarantine(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{
		&contextengine.InvalidError{Field: "f", Reason: "r"}, &message.InvalidError{Reason: "r"},
		&contextengine.StaleHeadError{}, &contextengine.EpochConflictError{}, &contextengine.IdempotencyConflictError{},
		contextengine.ErrUnknownSession, contextengine.ErrSessionErased, contextengine.ErrNothingToUndo,
		store.ErrUnavailable, store.ErrTooBusy, store.ErrLeaseStale,
	} {
		for _, mod := range []func(*engine.Registration){func(*engine.Registration) {}, core} {
			e := whole("acme")
			e.does(func(context.Context, engine.Operation) error { return fmt.Errorf("engine: %w", fault) })
			d := deskOf(t, e, mod)
			for _, c := range guardedCalls() {
				if _, err := c.do(t.Context(), d.slot); !errors.Is(err, fault) {
					t.Errorf("%s answers %v for %v", c.op, err, fault)
				}
			}
			d.noneAside(t)
			if calls := d.fallback.calls(); len(calls) != 0 {
				t.Errorf("the default engine answers for %v: %v", fault, calls)
			}
		}
	}
}

// TestBuiltInEnginesAreSetAsideForBreaksAlone: what they stand on may fail in
// ways that have no name.
func TestBuiltInEnginesAreSetAsideForBreaksAlone(t *testing.T) {
	t.Parallel()
	unnamed := errors.New("relation does not exist")
	for _, c := range guardedCalls() {
		t.Run(string(c.op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := whole("acme")
				d := deskOf(t, e, core)
				e.does(func(context.Context, engine.Operation) error { return unnamed })
				if _, err := c.do(t.Context(), d.slot); !errors.Is(err, unnamed) {
					t.Errorf("an error without a name: %v", err)
				}
				e.does(func(ctx context.Context, _ engine.Operation) error {
					<-ctx.Done()
					return fmt.Errorf("query: %w", ctx.Err())
				})
				if _, err := c.do(t.Context(), d.slot); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a deadline: %v", err)
				}
				d.noneAside(t)
				e.does(func(context.Context, engine.Operation) error { panic("index out of range") })
				if _, err := c.do(t.Context(), d.slot); (err != nil) != c.rethrown {
					t.Errorf("a panic: %v", err)
				}
				if q := d.aside(t); q.Operation != c.op || q.Owner != engine.CoreOwner {
					t.Errorf("%+v", q)
				}
			})
		})
	}
}

func TestF030F041F101WrongResultsAreFailures(t *testing.T) {
	t.Parallel()
	assembled := func(r contextengine.AssembleResult) func(*script) { return func(s *script) { s.assembled = &r } }
	compacted := func(r contextengine.CompactResult) func(*script) { return func(s *script) { s.compacted = &r } }
	next := &contextengine.CompactionOutcome{SessionID: "next"}
	for name, tc := range map[string]struct {
		op     engine.Operation
		answer func(*script)
		reason string
		// foreign results are looked at more closely.
		foreign bool
	}{
		"no messages":      {engine.OpAssemble, assembled(contextengine.AssembleResult{}), "messages", false},
		"negative tokens":  {engine.OpAssemble, assembled(contextengine.AssembleResult{Messages: []json.RawMessage{}, EstimatedTokens: -1}), "estimatedTokens", false},
		"not an object":    {engine.OpAssemble, assembled(contextengine.AssembleResult{Messages: []json.RawMessage{said("a"), []byte(`"b"`)}}), "messages[1]", false},
		"null message":     {engine.OpAssemble, assembled(contextengine.AssembleResult{Messages: []json.RawMessage{nil}}), "messages[0]", false},
		"broken JSON":      {engine.OpAssemble, assembled(contextengine.AssembleResult{Messages: []json.RawMessage{[]byte(`{"role":`)}}), "valid JSON", true},
		"status":           {engine.OpCommitTurn, func(s *script) { s.committed = &contextengine.CommitTurnResult{Status: "ignored"} }, `invalid commitTurn result status: "ignored"`, false},
		"more than all":    {engine.OpIngestBatch, func(s *script) { s.batched = &contextengine.IngestBatchResult{IngestedCount: 3} }, "3 of 2", false},
		"seqs":             {engine.OpIngestBatch, func(s *script) { s.batched = &contextengine.IngestBatchResult{Seqs: []int64{1}} }, "1 seqs", false},
		"compacted not ok": {engine.OpCompact, compacted(contextengine.CompactResult{Compacted: true}), "not ok", false},
		"successor alone":  {engine.OpCompact, compacted(contextengine.CompactResult{OK: true, Result: next}), "successor", false},
		"two successors": {engine.OpCompact, compacted(contextengine.CompactResult{OK: true, Compacted: true, Result: &contextengine.CompactionOutcome{
			SessionID: "next", SessionTarget: &contextengine.SessionTarget{SessionID: "other"},
		}}), `"next"`, false},
	} {
		for owner, mod := range map[string]func(*engine.Registration){"remote": func(*engine.Registration) {}, "core": core} {
			if owner == "core" && tc.foreign {
				continue
			}
			t.Run(name+" of "+owner, func(t *testing.T) {
				t.Parallel()
				e := whole("acme")
				tc.answer(e)
				d := deskOf(t, e, mod)
				for _, c := range guardedCalls() {
					if c.op != tc.op {
						continue
					}
					if _, err := c.do(t.Context(), d.slot); (err != nil) != c.rethrown {
						t.Errorf("answered %v", err)
					}
				}
				if q := d.aside(t); q.Operation != tc.op || !strings.Contains(q.Reason, tc.reason) {
					t.Errorf("%+v", q)
				}
			})
		}
	}
}

func TestTheDefaultEngineIsNeverSetAside(t *testing.T) {
	t.Parallel()
	d := deskOf(t, whole("acme"))
	d.fallback.does(func(context.Context, engine.Operation) error { panic("oh") })
	for _, g := range []*engine.Guard{d.Slot(""), d.Slot("missing")} {
		for _, c := range guardedCalls() {
			_, err := c.do(t.Context(), g)
			var failed *contextengine.EngineFailedError
			if !errors.As(err, &failed) || failed.EngineID != engine.LegacyID {
				t.Errorf("%s: %v", c.op, err)
			}
		}
	}
	if q := d.aside(t); q.EngineID != "missing" {
		t.Errorf("%+v", q)
	}
}

// TestB5TheFirstErrorIsRethrownWhenTheDefaultFailsToo: it carries the other's,
// by which a caller knows what to do.
func TestB5TheFirstErrorIsRethrownWhenTheDefaultFailsToo(t *testing.T) {
	t.Parallel()
	e := whole("acme")
	e.does(func(context.Context, engine.Operation) error { return errors.New("boom") })
	d := deskOf(t, e)
	d.fallback.does(func(context.Context, engine.Operation) error { return store.ErrUnavailable })
	_, err := d.slot.Ingest(t.Context(), contextengine.IngestParams{Session: on("s"), Message: said("a")})
	var failed *contextengine.EngineFailedError
	if !errors.As(err, &failed) || failed.EngineID != "acme" || !strings.Contains(err.Error(), "boom") || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("answered %v", err)
	}
	if q := d.aside(t); q.Reason != "boom" {
		t.Errorf("%+v", q)
	}
}

func TestTheFirstFailureIsKept(t *testing.T) {
	t.Parallel()
	const callers = 50
	e := whole("acme")
	var all sync.WaitGroup
	all.Add(callers)
	e.does(func(context.Context, engine.Operation) error {
		all.Done()
		all.Wait() // every caller is within the engine when it breaks
		return errors.New("boom")
	})
	d := deskOf(t, e)
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			if got := who(t, d.slot); got != engine.LegacyID {
				t.Errorf("%s answers", got)
			}
		})
	}
	done.Wait()
	d.aside(t)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := e.ends(); n != 1 {
		t.Errorf("disposed of %d times", n)
	}
}

func TestFailuresOfAnEarlierRegistrationAreNotHeldAgainstTheNext(t *testing.T) {
	t.Parallel()
	entered, free := make(chan struct{}), make(chan struct{})
	e := whole("acme")
	e.does(func(context.Context, engine.Operation) error {
		close(entered)
		<-free
		return errors.New("boom")
	})
	d := deskOf(t, e)
	answered := make(chan string, 1)
	go func() { answered <- who(t, d.slot) }()
	<-entered
	d.register(t, engine.Registration{ID: "acme", Owner: "remote:acme", Factory: always(named("mended")), Refresh: true})
	close(free)
	if got := <-answered; got != engine.LegacyID {
		t.Errorf("%s answers for the broken one", got)
	}
	d.noneAside(t)
	if got := who(t, d.slot); got != "mended" {
		t.Errorf("%s serves", got)
	}
}

// TestLateAnswersAreIgnored: they come after the default engine's and change
// nothing.
func TestLateAnswersAreIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := whole("acme")
		e.does(func(context.Context, engine.Operation) error {
			time.Sleep(time.Hour)
			return nil
		})
		d := deskOf(t, e)
		if got := who(t, d.slot); got != engine.LegacyID {
			t.Errorf("%s answers", got)
		}
		if d.Abandoned() != 1 {
			t.Errorf("%d calls are abandoned, want 1", d.Abandoned())
		}
		time.Sleep(2 * time.Hour)
		if d.Abandoned() != 0 || e.ends() != 1 {
			t.Errorf("%d calls are abandoned, %d disposals", d.Abandoned(), e.ends())
		}
		if got := who(t, d.slot); got != engine.LegacyID {
			t.Errorf("%s answers after the late answer", got)
		}
		d.aside(t)
	})
}

func TestALateEngineIsDisposedOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := whole("acme")
		d := deskOf(t, nil, func(r *engine.Registration) {
			r.Factory = func(context.Context) (contextengine.Engine, error) {
				time.Sleep(time.Hour)
				return late, nil
			}
		})
		if got := who(t, d.slot); got != engine.LegacyID {
			t.Errorf("%s answers", got)
		}
		if q := d.aside(t); q.Operation != engine.OpFactory {
			t.Errorf("%+v", q)
		}
		time.Sleep(2 * time.Hour)
		if late.ends() != 1 {
			t.Errorf("disposed of %d times", late.ends())
		}
	})
}

// TestAbandonedCallsAreBounded: an engine that heeds no abort is set aside
// before it holds more than so many goroutines.
func TestAbandonedCallsAreBounded(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	e := whole("acme")
	d := deskOf(t, e)
	aborts := 0
	for len(d.Quarantines()) == 0 && aborts < 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		e.does(func(context.Context, engine.Operation) error {
			cancel()
			<-free
			return nil
		})
		if _, err := d.slot.Assemble(ctx, contextengine.AssembleParams{Session: on("s")}); err == nil {
			cancel()
			break // the default engine's
		}
		aborts++
	}
	if q := d.aside(t); aborts != 64 || d.Abandoned() != 64 || !strings.Contains(q.Reason, "64 calls") {
		t.Errorf("%d aborts, %d abandoned: %+v", aborts, d.Abandoned(), q)
	}
	close(free)
}

func TestInstancesAreDisposedOfAfterTheirCalls(t *testing.T) {
	t.Parallel()
	entered, free := make(chan struct{}), make(chan struct{})
	e := whole("acme")
	e.does(func(_ context.Context, op engine.Operation) error {
		if op == engine.OpAssemble {
			close(entered)
			<-free
		}
		return nil
	})
	d := deskOf(t, e)
	answered := make(chan string, 1)
	go func() { answered <- who(t, d.slot) }()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- d.Close(t.Context()) }()
	if e.ends() != 0 {
		t.Error("disposed of during a call")
	}
	close(free)
	if got := <-answered; got != "acme" {
		t.Errorf("%s answers", got)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]engine.Operation{engine.OpAssemble, engine.OpDispose}, e.calls()); diff != "" {
		t.Error(diff)
	}
	if _, err := d.slot.Assemble(t.Context(), contextengine.AssembleParams{}); err == nil {
		t.Error("a closed registry serves")
	}
}

func TestSharedEnginesAreNotDisposedOf(t *testing.T) {
	t.Parallel()
	e := whole("acme")
	d := deskOf(t, e, func(r *engine.Registration) { r.Shared = true })
	who(t, d.slot)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.ends() != 0 {
		t.Errorf("disposed of %d times", e.ends())
	}
}

func TestRollbackGoesToTheEngineThatPrepared(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T, d *desk) *contextengine.SubagentPreparation {
		t.Helper()
		p, err := d.slot.PrepareSubagentSpawn(t.Context(), contextengine.PrepareSubagentSpawnParams{Session: on("s"), ChildSessionKey: "c"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Run("once it works", func(t *testing.T) {
		t.Parallel()
		e, rolled := whole("acme"), 0
		e.rollback = func(context.Context) error { rolled++; return nil }
		if err := prepare(t, deskOf(t, e)).Rollback(t.Context()); err != nil || rolled != 1 {
			t.Errorf("%v, rolled back %d times", err, rolled)
		}
	})
	t.Run("a panic sets aside", func(t *testing.T) {
		t.Parallel()
		e := whole("acme")
		e.rollback = func(context.Context) error { panic("oh") }
		d := deskOf(t, e)
		var failed *contextengine.EngineFailedError
		if err := prepare(t, d).Rollback(t.Context()); !errors.As(err, &failed) {
			t.Errorf("%v", err)
		}
		if q := d.aside(t); q.Operation != engine.OpRollback {
			t.Errorf("%+v", q)
		}
	})
	t.Run("not after it is gone", func(t *testing.T) {
		t.Parallel()
		e, rolled := whole("acme"), 0
		e.rollback = func(context.Context) error { rolled++; return nil }
		d := deskOf(t, e)
		p := prepare(t, d)
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Rollback(t.Context()); err == nil || rolled != 0 {
			t.Errorf("%v, rolled back %d times", err, rolled)
		}
	})
}

// TestAHostileEngineCostsNoTurn: many turns at once against an engine that does
// something else wrong each time.
func TestAHostileEngineCostsNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		e := whole("acme")
		e.hostile = true
		e.does(func(ctx context.Context, op engine.Operation) error {
			mu.Lock()
			n++
			how := n
			mu.Unlock()
			if op == engine.OpDispose {
				panic("not even that")
			}
			switch how % 5 {
			case 0:
				panic("oh")
			case 1:
				time.Sleep(time.Hour)
				return errors.New("late")
			case 2:
				<-ctx.Done()
				return ctx.Err()
			case 3:
				return trapError{}
			}
			time.Sleep(time.Second)
			return errors.New("boom")
		})
		d := deskOf(t, e)
		var turns sync.WaitGroup
		for i := range 40 {
			turns.Go(func() {
				s := on(fmt.Sprintf("s%d", i))
				for j := range 5 {
					if _, err := d.slot.Assemble(t.Context(), contextengine.AssembleParams{Session: s}); err != nil {
						t.Errorf("turn %d: assemble: %v", j, err)
					}
					res, err := d.slot.CommitTurn(t.Context(), contextengine.CommitTurnParams{Session: s, AdvancementKey: fmt.Sprint(j), Messages: []json.RawMessage{said("a")}})
					if err != nil || res.Status != contextengine.TurnCommitted {
						t.Errorf("turn %d: commit: %+v, %v", j, res, err)
					}
				}
			})
		}
		turns.Wait()
		d.aside(t)
		time.Sleep(2 * time.Hour)
		if d.Abandoned() != 0 {
			t.Errorf("%d calls have not ended", d.Abandoned())
		}
	})
}
