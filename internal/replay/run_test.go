package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/replay"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newEngine(t *testing.T) *engine.Lossless {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: testdb.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	e := engine.NewLossless(engine.Config{Log: st})
	t.Cleanup(func() {
		if err := e.Dispose(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return e
}

func session(key string) contextengine.Session {
	return contextengine.Session{Tenant: "t", SessionKey: key}
}

func message(role string, n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":%q,"content":"number %d: %s"}`, role, n, strings.Repeat("some words of it. ", 30)))
}

// turns is a recording of n turns from seq on; each has three events.
func turns(seq int64, n int) []replay.Step {
	var out []replay.Step
	for i := range n {
		out = append(out,
			replay.Step{Seq: seq, Message: message("user", i)},
			replay.Step{Seq: seq + 1, Message: message("assistant", i), Reply: true},
			replay.Step{Seq: seq + 2, Kind: replay.TurnEnd})
		seq += 3
	}
	return out
}

func shown(t *testing.T, e *engine.Lossless, key string, budget int) []string {
	t.Helper()
	res, err := e.Assemble(t.Context(), contextengine.AssembleParams{Session: session(key), TokenBudget: &budget})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, m := range res.Messages {
		out = append(out, string(m))
	}
	return out
}

func TestReplayFollowsResetsAndRewinds(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	// The recording's seqs are far from the run's, as after events of its own.
	steps := turns(101, 3)
	steps = append(steps, replay.Step{Seq: 110, Kind: replay.Reset, Target: 104})
	steps = append(steps, turns(111, 2)...)
	steps = append(steps, replay.Step{Seq: 117, Kind: replay.Rewind, Target: 112}, replay.Step{Seq: 118, Message: message("user", 77)})
	res, err := replay.Run(t.Context(), e, steps, replay.Options{Session: session("k"), Budget: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, seq := range []int64{104, 105, 107, 108, 111, 112, 118} {
		for _, s := range steps {
			if s.Seq == seq {
				want = append(want, string(s.Message))
			}
		}
	}
	if diff := cmp.Diff(want, shown(t, e, "k", 100_000)); diff != "" {
		t.Errorf("the window at the end (-want +got):\n%s", diff)
	}
	if res.Calls != 5 || res.Compactions != 0 || res.Shown != len(want) || res.Breaks["epoch"] != 1 {
		t.Errorf("%+v", res)
	}
}

// What a host named need not be a message: a turn's end, or an event of the
// engine's own.
func TestReplayFollowsTargetsThatAreNoMessages(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for key, tc := range map[string]struct {
		step replay.Step
		want []int
	}{
		"keep from a turn's end":        {replay.Step{Kind: replay.Reset, Target: 103}, []int{1, 2}},
		"keep nothing":                  {replay.Step{Kind: replay.Reset, Target: 109}, nil},
		"back to a turn's end":          {replay.Step{Kind: replay.Rewind, Target: 106}, []int{0, 1}},
		"back to before all":            {replay.Step{Kind: replay.Rewind, Target: 7}, nil},
		"keep what is older than it is": {replay.Step{Kind: replay.Reset, Target: 7}, []int{0, 1, 2}},
	} {
		tc.step.Seq = 110
		if _, err := replay.Run(t.Context(), e, append(turns(101, 3), tc.step), replay.Options{Session: session(key), Budget: 100_000}); err != nil {
			t.Fatal(err)
		}
		want := []string{}
		for _, n := range tc.want {
			want = append(want, string(message("user", n)), string(message("assistant", n)))
		}
		if diff := cmp.Diff(want, shown(t, e, key, 100_000)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestPoliciesAreCompared(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	steps := turns(1, 40)
	with, err := replay.Run(t.Context(), e, steps, replay.Options{Session: session("a"), Budget: 4000})
	if err != nil {
		t.Fatal(err)
	}
	without, err := replay.Run(t.Context(), uncompacted{e}, steps, replay.Options{Session: session("b"), Budget: 4000})
	if err != nil {
		t.Fatal(err)
	}
	if with.Compactions == 0 || with.SummaryCalls == 0 || with.Summaries == 0 || with.LeftOut != 0 {
		t.Errorf("with compactions: %+v", with)
	}
	if without.Compactions != 0 || without.Summaries != 0 || without.LastLeft == 0 || without.MaxLeftOut == 0 {
		t.Errorf("without: %+v", without)
	}
	for _, r := range []replay.Result{with, without} {
		if r.Calls != 40 || r.OverBudget != 0 || r.MaxTokens > 4000 || r.FreshTokens <= 0 || r.ReusedShare <= 0 || r.ReusedShare >= 1 {
			t.Errorf("%+v", r)
		}
	}
	again, err := replay.Run(t.Context(), e, steps, replay.Options{Session: session("c"), Budget: 4000})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(with.Totals, again.Totals); diff != "" {
		t.Errorf("the same policy again (-first +second):\n%s", diff)
	}
}

type uncompacted struct{ *engine.Lossless }

func (uncompacted) Compact(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true}, nil
}

func TestWithTurns(t *testing.T) {
	t.Parallel()
	say := func(seq int64) replay.Step { return replay.Step{Seq: seq} }
	end := func(seq int64) replay.Step { return replay.Step{Seq: seq, Kind: replay.TurnEnd} }
	// Odd seqs below ten are the user's.
	user := func(s replay.Step) bool { return s.Seq%2 == 1 }
	for name, tc := range map[string]struct{ in, want []replay.Step }{
		"nothing":       {nil, nil},
		"turns":         {[]replay.Step{say(1), say(2), say(3), say(4)}, []replay.Step{say(1), say(2), end(3), say(3), say(4), end(4)}},
		"two questions": {[]replay.Step{say(1), say(3), say(4)}, []replay.Step{say(1), say(3), say(4), end(4)}},
		"has its own":   {[]replay.Step{say(1), say(2), end(3), say(5)}, []replay.Step{say(1), say(2), end(3), say(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, replay.WithTurns(tc.in, user)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
