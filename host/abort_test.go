package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/host"
)

// long is a turn that takes every step there is: a compaction before the model
// call, tools, an overflow, a timeout.
func long() *world {
	return &world{model: script{callsTool, overflows, late, answers}, windows: sized(950)}
}

// TestAbortAtEveryStep: the turn ends at once with the caller's cause, nothing is
// called any more and nothing is committed, whether what is running listens or not.
func TestAbortAtEveryStep(t *testing.T) {
	t.Parallel()
	whole := long()
	if _, err := newHost(t, whole, full{whole}).Turn(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	steps := whole.log()
	if len(steps) < 20 {
		t.Fatalf("the turn is too simple: %v", steps)
	}
	why := errors.New("the user pressed stop")
	for at, step := range steps {
		for _, listens := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d %s, listens %v", at, step, listens), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				over := make(chan struct{})
				w := long()
				w.onStep = func(ctx context.Context, n int, _ string) error {
					switch {
					case n != at:
						return nil
					case listens:
						cancel(why)
						<-ctx.Done()
						return ctx.Err()
					}
					cancel(why)
					<-over
					return nil // late, and as if nothing had happened
				}
				h := newHost(t, w, full{w})
				res, err := h.Turn(ctx, request())
				close(over)
				var abort *host.AbortError
				if !errors.As(err, &abort) || !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
					t.Fatalf("%+v %v", res, err)
				}
				if diff := cmp.Diff(steps[:at+1], w.log()); diff != "" {
					t.Errorf("steps after the abort: %s", diff)
				}
				if committed := step == "maintain turn"; (res.Answer != nil) != committed {
					t.Errorf("result: %+v", res)
				}
			})
		}
	}
}

func TestAbortedBeforeItBegins(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &world{}
	var abort *host.AbortError
	if _, err := newHost(t, w, full{w}).Turn(ctx, request()); !errors.As(err, &abort) || len(w.log()) != 0 {
		t.Errorf("%v after %v", err, w.log())
	}
}

// TestModelsAbortIsNotTheCallers: a model that says "cancelled" by itself failed.
func TestModelsAbortIsNotTheCallers(t *testing.T) {
	t.Parallel()
	w := &world{model: script{func(host.Request) (host.Response, error) { return host.Response{}, context.Canceled }}}
	var abort *host.AbortError
	_, err := newHost(t, w, full{w}).Turn(t.Context(), request())
	if errors.As(err, &abort) || !modelError(err) {
		t.Errorf("%T %v", err, err)
	}
}

// TestTurnsOfASessionTakeTurns, those of others run beside.
func TestTurnsOfASessionTakeTurns(t *testing.T) {
	t.Parallel()
	inside, proceed := make(chan string, 2), make(chan struct{})
	w := &world{onStep: func(_ context.Context, _ int, step string) error {
		if step == "model" {
			inside <- step
			<-proceed
		}
		return nil
	}}
	h := newHost(t, w, full{w})
	done := make(chan error, 3)
	turn := func(key string) {
		_, err := h.Turn(t.Context(), request(func(r *host.TurnRequest) { r.Session.SessionKey = key }))
		done <- err
	}
	go turn("a")
	<-inside
	go turn("b")
	<-inside // "b" does not wait for "a"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var abort *host.AbortError
	if _, err := h.Turn(ctx, request(func(r *host.TurnRequest) { r.Session.SessionKey = "a" })); !errors.As(err, &abort) {
		t.Errorf("a second turn of a busy session: %v", err)
	}
	go turn("a")
	close(proceed)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestBackgroundMaintenanceDoesNotHoldTheTurn, but the session's next one; what
// comes meanwhile is one more run.
func TestBackgroundMaintenanceDoesNotHoldTheTurn(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 10), make(chan struct{})
	w := &world{info: contextengine.Info{ID: "bg", Name: "bg", TurnMaintenanceMode: contextengine.BackgroundMaintenance}}
	w.onStep = func(ctx context.Context, _ int, step string) error {
		if step != "maintain turn" {
			return nil
		}
		begun <- struct{}{}
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	h := newHost(t, w, full{w})
	first := func(r *host.TurnRequest) { r.FirstTurn = true }
	if _, err := h.Turn(t.Context(), request(first)); err != nil {
		t.Fatal(err)
	}
	<-begun
	done := make(chan error, 1)
	go func() {
		_, err := h.Turn(t.Context(), request(first))
		done <- err
	}()
	proceed <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-begun // the second turn's; Close aborts it
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{"assemble", "model", "commit", "maintain turn", "assemble", "model", "commit", "maintain turn"}
	if diff := cmp.Diff(want, w.log()); diff != "" {
		t.Error(diff)
	}
}
