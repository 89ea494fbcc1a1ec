package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/host"
)

type script = []func(host.Request) (host.Response, error)

var errBroken = errors.New("broken")

// TestCallsComeInOrder: the table is the contract's lifecycle.
func TestCallsComeInOrder(t *testing.T) {
	t.Parallel()
	const opening = "bootstrap, maintain bootstrap, assemble"
	const closing = "model, commit, maintain turn"
	const compaction = "model, compact overflow, maintain compaction, bootstrap, maintain bootstrap, assemble"
	same := []contextengine.AssembleResult{{Messages: window("same")}}
	for name, tc := range map[string]struct {
		world   *world
		request func(*host.TurnRequest)
		limits  host.Limits
		want    string
		err     func(error) bool
		// uncommitted: the turn is accepted, but its commit failed.
		uncommitted bool
	}{
		"first turn":              {request: func(r *host.TurnRequest) { r.FirstTurn = true }, want: "assemble, " + closing},
		"later turn":              {want: opening + ", " + closing},
		"tools, owned compaction": {world: &world{model: script{callsTool, callsTool, answers}}, want: opening + ", model, tool read, assemble, model, tool read, assemble, " + closing},
		"tools, native compaction": {
			world: &world{info: contextengine.Info{ID: "n", Name: "n"}, model: script{callsTool, answers}}, want: opening + ", model, tool read, " + closing,
		},
		"overflow":          {world: &world{model: script{overflows, answers}}, want: opening + ", " + compaction + ", " + closing},
		"overflow, twice":   {world: &world{model: script{overflows, overflows, answers}}, want: opening + ", " + compaction + ", " + compaction + ", " + closing},
		"overflow in tools": {world: &world{model: script{callsTool, overflows, answers}}, want: opening + ", model, tool read, assemble, " + compaction + ", " + closing},
		"overflow on the first turn": {
			world: &world{model: script{overflows, answers}}, request: func(r *host.TurnRequest) { r.FirstTurn = true },
			want: "assemble, model, compact overflow, maintain compaction, assemble, " + closing,
		},
		"overflow for ever": {
			world: &world{model: script{overflows}}, want: opening + ", " + compaction + ", " + compaction + ", " + compaction + ", model",
			err: overflowAfter(3, "as many compactions as allowed"),
		},
		"compactions that change nothing": {
			world: &world{model: script{overflows, answers}, windows: same},
			want:  opening + ", " + compaction + strings.Repeat(strings.TrimPrefix(", "+compaction, ", model"), 2),
			err: func(err error) bool {
				return errors.Is(err, host.ErrIdenticalPayload) && overflowAfter(3, "does not change")(err)
			},
		},
		"nothing to compact": {
			world: &world{model: script{overflows}, compactions: []contextengine.CompactResult{{OK: true, Reason: "already compacted"}}},
			want:  opening + ", model, compact overflow", err: overflowAfter(1, "already compacted"),
		},
		"a compaction that fails": {
			world: &world{model: script{overflows}, fail: map[string]error{"compact overflow": errBroken}},
			want:  opening + ", model, compact overflow", err: func(err error) bool { return errors.Is(err, errBroken) && overflowAfter(1, "failed")(err) },
		},
		"a compaction that hangs": {
			world: &world{model: script{overflows}, onStep: hangIn("compact overflow")}, limits: host.Limits{CompactTimeout: 20 * time.Millisecond},
			want: opening + ", model, compact overflow", err: func(err error) bool {
				return errors.Is(err, context.DeadlineExceeded) && overflowAfter(1, "failed")(err)
			},
		},
		"model fails":               {world: &world{model: script{fails}}, want: opening + ", model", err: modelError},
		"model fails after tools":   {world: &world{model: script{callsTool, fails}}, want: opening + ", model, tool read, assemble, model", err: modelError},
		"model answers no message":  {world: &world{model: script{func(host.Request) (host.Response, error) { return host.Response{}, nil }}}, want: opening + ", model", err: modelError},
		"model panics":              {world: &world{model: script{func(host.Request) (host.Response, error) { panic("boom") }}}, want: opening + ", model", err: modelError},
		"model is late, small":      {world: &world{model: script{late}}, want: opening + ", model", err: modelError},
		"tool loop without end":     {world: &world{model: script{callsTool}}, limits: host.Limits{MaxModelCalls: 2}, want: opening + ", model, tool read, assemble, model, tool read, assemble", err: modelError},
		"model hangs":               {world: &world{onStep: hangIn("model")}, limits: host.Limits{ModelTimeout: 20 * time.Millisecond}, want: opening + ", model", err: modelError},
		"tool fails":                {world: &world{model: script{callsTool}, fail: map[string]error{"tool read": errBroken}}, want: opening + ", model, tool read", err: func(err error) bool { var e *host.ToolError; return errors.As(err, &e) && errors.Is(err, errBroken) }},
		"model is late, large":      {world: &world{model: script{late, answers}, windows: sized(700)}, want: opening + ", model, compact timeout_recovery, maintain compaction, " + opening + ", " + closing},
		"model is late for ever":    {world: &world{model: script{late}, windows: sized(700)}, want: opening + strings.Repeat(", model, compact timeout_recovery, maintain compaction, "+opening, 2) + ", model", err: modelError},
		"near the budget":           {world: &world{windows: sized(950)}, want: opening + ", compact preflight, maintain compaction, assemble, " + closing},
		"near, nothing to compact":  {world: &world{windows: sized(950), compactions: []contextengine.CompactResult{{OK: true, Reason: "nothing to compact"}}}, want: opening + ", compact preflight, " + closing},
		"near, compaction fails":    {world: &world{windows: sized(950), fail: map[string]error{"compact preflight": errBroken}}, want: opening + ", compact preflight, " + closing},
		"near, not asked for":       {world: &world{windows: sized(950)}, limits: host.Limits{ProactiveShare: -1}, want: opening + ", " + closing},
		"over budget":               {world: &world{windows: []contextengine.AssembleResult{{Messages: window(), OverBudget: &contextengine.OverBudget{}}}}, want: opening + ", compact preflight, maintain compaction, assemble, " + closing},
		"bootstrap fails":           {world: &world{fail: map[string]error{"bootstrap": errBroken}}, want: "bootstrap, assemble, " + closing},
		"bootstrap hangs":           {world: &world{onStep: hangIn("bootstrap")}, limits: host.Limits{EngineTimeout: 20 * time.Millisecond}, want: "bootstrap, assemble, " + closing},
		"bootstrap is absent":       {world: &world{fail: map[string]error{"bootstrap": errors.ErrUnsupported}}, want: "bootstrap, assemble, " + closing},
		"maintain fails":            {world: &world{fail: map[string]error{"maintain bootstrap": errBroken, "maintain turn": errBroken}}, want: opening + ", " + closing},
		"assemble fails":            {world: &world{fail: map[string]error{"assemble": errBroken}}, want: opening + ", " + closing},
		"commit fails":              {world: &world{fail: map[string]error{"commit": errBroken}}, want: opening + ", model, commit", uncommitted: true},
		"commit is absent":          {world: &world{fail: map[string]error{"commit": errors.ErrUnsupported}}, want: opening + ", model, commit, after turn 1 of 3, maintain turn"},
		"commit, after absent":      {world: &world{fail: map[string]error{"commit": errors.ErrUnsupported, "after turn 1 of 3": errors.ErrUnsupported}}, want: opening + ", model, commit, after turn 1 of 3, ingest batch [turn-1/0 turn-1/1], maintain turn"},
		"all of the commits absent": {world: &world{fail: map[string]error{"commit": errors.ErrUnsupported, "after turn 1 of 3": errors.ErrUnsupported, "ingest batch [turn-1/0 turn-1/1]": errors.ErrUnsupported}}, want: opening + ", model, commit, after turn 1 of 3, ingest batch [turn-1/0 turn-1/1], ingest turn-1/0, ingest turn-1/1, maintain turn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tc.world
			if w == nil {
				w = &world{}
			}
			h := newHost(t, w, full{w}, func(c *host.Config) { c.Limits = tc.limits })
			r := request(func(r *host.TurnRequest) { r.History = window("before") })
			if tc.request != nil {
				tc.request(&r)
			}
			res, err := h.Turn(t.Context(), r)
			if diff := cmp.Diff(strings.Split(tc.want, ", "), w.log()); diff != "" {
				t.Error(diff)
			}
			switch {
			case tc.err == nil && err != nil, tc.err != nil && !tc.err(err):
				t.Errorf("error: %T %v", err, err)
			case (res.CommitErr != nil) != tc.uncommitted:
				t.Errorf("commit: %v", res.CommitErr)
			case err == nil && string(res.Answer) != `{"role":"assistant","content":"done"}`:
				t.Errorf("answer: %s", res.Answer)
			}
		})
	}
}

func overflowAfter(compactions int, reason string) func(error) bool {
	return func(err error) bool {
		var e *host.ContextOverflowError
		var o *host.OverflowError
		return errors.As(err, &e) && errors.As(err, &o) && e.Compactions == compactions && strings.Contains(err.Error(), reason)
	}
}

func modelError(err error) bool {
	var e *host.ModelError
	return errors.As(err, &e)
}

// hangIn is an engine or a model that ends when its context does.
func hangIn(step string) func(context.Context, int, string) error {
	return func(ctx context.Context, _ int, s string) error {
		if s != step {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// sized are windows of an estimated size, each unlike the one before.
func sized(tokens int) []contextengine.AssembleResult {
	var out []contextengine.AssembleResult
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		out = append(out, contextengine.AssembleResult{Messages: window(text), EstimatedTokens: tokens})
	}
	return out
}

// TestEnginesWithoutOptionalCalls get the required ones.
func TestEnginesWithoutOptionalCalls(t *testing.T) {
	t.Parallel()
	w := &world{model: script{overflows, answers}}
	if _, err := newHost(t, w, w).Turn(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	want := []string{"assemble", "model", "compact overflow", "assemble", "model", "ingest turn-1/0", "ingest turn-1/1"}
	if diff := cmp.Diff(want, w.log()); diff != "" {
		t.Error(diff)
	}
}
