package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact/summarize"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
)

// delegating keeps its log in an engine that stores, and has the host compact.
type delegating struct {
	contextengine.Engine
	info contextengine.Info
	how  func(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error)
}

func (d delegating) Info() contextengine.Info { return d.info }

func (d delegating) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	return d.how(ctx, p)
}

// unsupported is what a remote engine without the call answers.
func unsupported(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{}, fmt.Errorf("501: %w", errors.ErrUnsupported)
}

// told is a conversation that is worth a compaction.
func told(turns int) []string {
	var out []string
	for i := range turns {
		out = append(out,
			fmt.Sprintf(`{"role":"user","content":"Please look at file-%d.go and remember that the limit is %d."}`, i, 7000+i),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"toolCall","id":"c%d","name":"read","arguments":{"path":"file-%d.go"}}]}`, i, i),
			fmt.Sprintf(`{"role":"toolResult","toolCallId":"c%d","toolName":"read","content":[{"type":"text","text":"%s"}]}`, i, strings.Repeat("package main ", 150)),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Done with file-%d.go."}]}`, i))
	}
	return out
}

func force() contextengine.CompactParams {
	budget := 8000
	return contextengine.CompactParams{Session: on("s"), Force: true, TokenBudget: &budget, CompactionTarget: contextengine.TargetThreshold}
}

func TestEnginesDelegateCompaction(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error){
		"by the call":         contextengine.DelegateCompaction,
		"by lacking the call": unsupported,
		"and names no session": func(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
			p.Session = on("another")
			return contextengine.DelegateCompaction(ctx, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, reg, stored := builtins(t)
			e := delegating{Engine: named("acme"), info: contextengine.Info{ID: "acme", Name: "Acme"}, how: how}
			if err := reg.Register(engine.Registration{ID: "acme", Owner: "acme", Factory: always(e)}); err != nil {
				t.Fatal(err)
			}
			b := &bundle{t: t, store: log.Store, Lossless: engine.NewLossless(engine.Config{Log: log})}
			defer func() { _ = b.Dispose(context.WithoutCancel(t.Context())) }()
			b.ingest("s", told(12)...)
			slot := reg.Slot("acme")
			res, err := slot.Compact(t.Context(), force())
			if err != nil || !res.Compacted || res.Result.TokensAfter >= res.Result.TokensBefore {
				t.Fatalf("%+v, %v", res, err)
			}
			if !strings.Contains(res.Result.Summary, "## Recent turns preserved verbatim") {
				t.Errorf("not the native runtime's: %s", res.Result.Summary)
			}
			if again, err := slot.Compact(t.Context(), force()); err != nil || again.Compacted || again.Reason != "already compacted" {
				t.Errorf("again: %+v, %v", again, err)
			}
			if qs := reg.Quarantines(); len(qs) != 0 {
				t.Errorf("set aside: %+v", qs)
			}
			if s, err := stored.UndoCompaction(t.Context(), on("s"), nil); err != nil || s.Epoch != 3 {
				t.Errorf("undone: %+v, %v", s, err)
			}
		})
	}
}

// An engine that owns compaction and does not compact is broken.
func TestOwnersOfCompactionDoNotDelegate(t *testing.T) {
	t.Parallel()
	_, reg, _ := builtins(t)
	e := delegating{Engine: named("acme"), info: contextengine.Info{ID: "acme", Name: "Acme", OwnsCompaction: true}, how: func(_ context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
		if p.Runtime != nil {
			t.Error("it was given the runtime")
		}
		return unsupported(t.Context(), p)
	}}
	if err := reg.Register(engine.Registration{ID: "acme", Owner: "acme", Factory: always(e)}); err != nil {
		t.Fatal(err)
	}
	var failed *contextengine.EngineFailedError
	if _, err := reg.Slot("acme").Compact(t.Context(), force()); !errors.As(err, &failed) || len(reg.Quarantines()) != 1 {
		t.Errorf("%v, %+v", err, reg.Quarantines())
	}
}

// TestNativeFailuresAreNotTheDelegates: the host's runtime failed, not the engine.
func TestNativeFailuresAreNotTheDelegates(t *testing.T) {
	t.Parallel()
	d := deskOf(t, delegating{Engine: named("acme"), info: contextengine.Info{ID: "acme", Name: "Acme"}, how: contextengine.DelegateCompaction})
	d.fallback.does(func(context.Context, engine.Operation) error { return errors.New("no model") })
	_, err := d.slot.Compact(t.Context(), force())
	if err == nil || !strings.Contains(err.Error(), "native compaction: no model") {
		t.Errorf("%v", err)
	}
	d.noneAside(t)
}

// TestTheSafetyTimeoutCoversTheNativeRuntime, whether it serves or is delegated to.
func TestTheSafetyTimeoutCoversTheNativeRuntime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := engine.NewRegistry(engine.RegistryConfig{})
		native := named(engine.LegacyID)
		native.does(func(ctx context.Context, _ engine.Operation) error { <-ctx.Done(); return ctx.Err() })
		acme := delegating{Engine: named("acme"), info: contextengine.Info{ID: "acme", Name: "Acme"}, how: unsupported}
		for _, e := range []contextengine.Engine{native, acme} {
			owner := map[bool]string{true: engine.CoreOwner, false: "acme"}[e.Info().ID == engine.LegacyID]
			if err := reg.Register(engine.Registration{ID: e.Info().ID, Owner: owner, Factory: always(e)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{engine.LegacyID, "acme"} {
			began := time.Now()
			_, err := reg.Slot(id).Compact(t.Context(), force())
			if took := time.Since(began); err == nil || took != engine.DefaultCompactDeadline {
				t.Errorf("%s: after %s: %v", id, took, err)
			}
		}
		if qs := reg.Quarantines(); len(qs) != 0 {
			t.Errorf("set aside: %+v", qs)
		}
		if err := reg.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// failing writes no summaries.
type failing struct{ summarize.Extractive }

func (failing) Summarize(context.Context, summarize.Request) (summarize.Result, error) {
	return summarize.Result{}, errors.New("no model")
}

func TestF099F100F103SuccessorSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := engine.NewLegacy(engine.Config{Log: b.store}, nil)
	broken := engine.NewLegacy(engine.Config{Log: b.store, Summarizer: failing{}}, nil)
	defer func() {
		_ = errors.Join(l.Dispose(context.WithoutCancel(t.Context())), broken.Dispose(context.WithoutCancel(t.Context())))
	}()
	b.ingest("s", told(12)...)
	p := force()
	p.SessionID, p.RotateSession = "host-1", true
	p.SessionTarget = &contextengine.SessionTarget{AgentID: "main", SessionID: "host-1", SessionKey: "s", StorePath: "store"}

	// Failed or aborted before the commit: the predecessor stays.
	if _, err := broken.Compact(t.Context(), p); err == nil {
		t.Fatal("compacted without a summary")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Compact(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("aborted: %v", err)
	}
	if n := b.count("s", events.HostSessionBound); n != 0 {
		t.Fatalf("%d successors without a compaction", n)
	}
	res, err := l.Compact(t.Context(), p)
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	want := *p.SessionTarget
	want.SessionID = res.Result.SessionID
	if want.SessionID == "" || want.SessionID == "host-1" || !cmp.Equal(&want, res.Result.SessionTarget) {
		t.Errorf("successor %q, target %+v", res.Result.SessionID, res.Result.SessionTarget)
	}
	if n := b.count("s", events.HostSessionBound); n != 1 {
		t.Errorf("%d successors are on record", n)
	}
	// Nothing to compact, no successor; and none where none is asked for.
	if res, err = l.Compact(t.Context(), p); err != nil || res.Compacted || res.Result != nil || res.Reason != "already compacted" {
		t.Errorf("again: %+v, %v", res, err)
	}
	b.ingest("s", told(12)...)
	p.RotateSession = false
	if res, err = l.Compact(t.Context(), p); err != nil || !res.Compacted || res.Result.SessionID != "" {
		t.Errorf("unasked: %+v, %v", res, err)
	}
}

// count is how many events of a type a session has.
func (b *bundle) count(key string, typ events.Type) int {
	b.t.Helper()
	s, err := b.store.Session(b.t.Context(), "t", key)
	if err != nil {
		b.t.Fatal(err)
	}
	evs, err := b.store.EventsOfType(b.t.Context(), "t", s.SID, typ, 0, s.Head, 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(evs)
}

// The native runtime keeps the newest turns as they were and tells the rest once,
// however often it compacts, and loses nothing.
func TestNativeCompactionTellsThePastOnce(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(engine.Config) engineWithEnd{
		"legacy":  func(c engine.Config) engineWithEnd { return engine.NewLegacy(c, nil) },
		"rolling": func(c engine.Config) engineWithEnd { return engine.NewRolling(c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := made(engine.Config{Log: b.store, RollingTurns: 2})
			defer func() { _ = e.Dispose(context.WithoutCancel(t.Context())) }()
			var newest string
			for round := range 4 {
				lines := told(12)
				newest = fmt.Sprintf(`{"role":"user","content":"question of round %d"}`, round)
				b.ingest("s", append(lines, newest)...)
				res, err := e.Compact(t.Context(), force())
				if err != nil || !res.Compacted {
					t.Fatalf("round %d: %+v, %v", round, res, err)
				}
				w := b.window("s", 8000)
				summaries := 0
				for _, m := range w.Messages {
					if strings.Contains(string(m), `"compactionSummary"`) {
						summaries++
					}
				}
				if summaries != 1 || w.LeftOut != 0 || w.OverBudget != nil {
					t.Fatalf("round %d: %d summaries, %d left out", round, summaries, w.LeftOut)
				}
				if last := w.Messages[len(w.Messages)-1]; !cmp.Equal(last, json.RawMessage(newest)) {
					t.Fatalf("round %d ends with %s", round, last)
				}
			}
		})
	}
}
