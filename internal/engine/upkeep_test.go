package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// kept is a script behind upkeep, which notes what it is asked to maintain.
type kept struct {
	*script
	mu       sync.Mutex
	maintain []contextengine.MaintainParams
	during   func(ctx context.Context)
}

func (k *kept) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	k.mu.Lock()
	k.maintain = append(k.maintain, p)
	during := k.during
	k.mu.Unlock()
	if during != nil {
		during(ctx)
	}
	return k.script.Maintain(ctx, p)
}

func (k *kept) asked() (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.maintain {
		out = append(out, p.SessionKey+" "+p.Reason)
	}
	slices.Sort(out)
	return out
}

func upkeepOf(t *testing.T, mode contextengine.TurnMaintenanceMode, cfg engine.UpkeepConfig) (*kept, *desk, *engine.Upkeep) {
	t.Helper()
	k := &kept{script: whole("acme")}
	k.info.TurnMaintenanceMode = mode
	d := deskOf(t, k)
	u := engine.NewUpkeep(d.slot, cfg)
	t.Cleanup(func() { _ = u.Stop(context.WithoutCancel(t.Context())) })
	return k, d, u
}

func TestMaintenanceFollowsBootstrapTurnAndCompaction(t *testing.T) {
	t.Parallel()
	k, _, u := upkeepOf(t, "", engine.UpkeepConfig{})
	k.compacted = &contextengine.CompactResult{OK: true, Compacted: true}
	for _, do := range []func() error{
		func() error {
			_, err := u.Bootstrap(t.Context(), contextengine.BootstrapParams{Session: on("a")})
			return err
		},
		func() error {
			_, err := u.CommitTurn(t.Context(), contextengine.CommitTurnParams{Session: on("b"), AdvancementKey: "k"})
			return err
		},
		func() error {
			_, err := u.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on("c")})
			return err
		},
		func() error {
			_, err := u.Compact(t.Context(), contextengine.CompactParams{Session: on("d")})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"a bootstrap", "b turn", "c turn", "d compaction"}, k.asked()); d != "" {
		t.Error(d)
	}
	// Nothing was done, or nothing changed: nothing to maintain.
	k.compacted = &contextengine.CompactResult{OK: true}
	if _, err := u.Compact(t.Context(), contextengine.CompactParams{Session: on("e")}); err != nil {
		t.Fatal(err)
	}
	k.does(func(_ context.Context, op engine.Operation) error {
		if op == engine.OpMaintain {
			return nil
		}
		return &contextengine.InvalidError{Field: "messages", Reason: "none"}
	})
	if _, err := u.CommitTurn(t.Context(), contextengine.CommitTurnParams{Session: on("f"), AdvancementKey: "k"}); err == nil {
		t.Fatal("committed")
	}
	if n := len(k.asked()); n != 4 {
		t.Errorf("%v", k.asked())
	}
}

func TestFailedMaintenanceFailsNoTurn(t *testing.T) {
	t.Parallel()
	for _, mode := range []contextengine.TurnMaintenanceMode{contextengine.ForegroundMaintenance, contextengine.BackgroundMaintenance} {
		synctest.Test(t, func(t *testing.T) {
			k, d, u := upkeepOf(t, mode, engine.UpkeepConfig{})
			k.does(func(_ context.Context, op engine.Operation) error {
				if op == engine.OpMaintain {
					return errors.New("disk full")
				}
				return nil
			})
			if _, err := u.CommitTurn(t.Context(), contextengine.CommitTurnParams{Session: on("s"), AdvancementKey: "k"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if qs := d.Quarantines(); len(qs) != 1 || qs[0].Operation != engine.OpMaintain {
				t.Errorf("%s: %+v", mode, qs)
			}
			if err := u.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestF062F088BackgroundMaintenanceCoalesces: the turns do not wait, one run goes
// on and one waits with the newest parameters, and other sessions are not held up.
func TestF062F088BackgroundMaintenanceCoalesces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, _, u := upkeepOf(t, contextengine.BackgroundMaintenance, engine.UpkeepConfig{Parallel: 2})
		gate := make(chan struct{})
		k.during = func(context.Context) { <-gate }
		turn := func(key string, n int) {
			p := contextengine.AfterTurnParams{Session: on(key), RuntimeContext: &contextengine.RuntimeContext{RunID: fmt.Sprint(n)}}
			if _, err := u.AfterTurn(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 5 {
			turn("busy", n)
			synctest.Wait() // the first has begun
		}
		turn("other", 0)
		synctest.Wait()
		if d := cmp.Diff([]string{"busy turn", "other turn"}, k.asked()); d != "" {
			t.Fatal(d)
		}
		close(gate)
		synctest.Wait()
		if d := cmp.Diff([]string{"busy turn", "busy turn", "other turn"}, k.asked()); d != "" {
			t.Fatal(d)
		}
		last := k.maintain[len(k.maintain)-1]
		if last.SessionKey != "busy" || last.RuntimeContext.RunID != "4" || !last.RuntimeContext.AllowDeferredCompaction {
			t.Errorf("%+v", last.RuntimeContext)
		}
		if s := u.Stats(); s != (engine.UpkeepStats{Unchanged: 3, Coalesced: 3}) {
			t.Errorf("%+v", s)
		}
		if err := u.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func TestBackgroundMaintenanceIsBoundedAndStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, d, u := upkeepOf(t, contextengine.BackgroundMaintenance, engine.UpkeepConfig{Parallel: 1, Waiting: 2})
		k.during = func(ctx context.Context) { <-ctx.Done() }
		for n := range 6 {
			if _, err := u.AfterTurn(t.Context(), contextengine.AfterTurnParams{Session: on(fmt.Sprint(n))}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if s := u.Stats(); s.Dropped != 3 || len(k.asked()) != 1 {
			t.Errorf("%+v, %v", s, k.asked())
		}
		if err := u.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.noneAside(t) // an abort is nobody's fault
		if s := u.Stats(); s.Dropped != 5 || len(k.asked()) != 1 {
			t.Errorf("%+v, %v", s, k.asked())
		}
	})
}
