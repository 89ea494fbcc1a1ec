package summarizers_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/summarizers"
)

var hostSpec = summarizers.Spec{Name: "mine", Kind: summarizers.Host, Model: "house"}

// gateway answers questions until the test ends.
func gateway(t *testing.T, b *bundle, answer func(store.HostJob) (store.HostAnswer, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			job, ok, err := b.store.LeaseHostJob(ctx, "t", "gw", nil, time.Minute)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				t.Error(err)
				return
			case ok:
				if a, err := answer(job); err != nil {
					_, err = b.store.FailHostJob(ctx, "t", job.ID, err.Error())
					report(t, err)
				} else {
					_, err = b.store.AnswerHostJob(ctx, "t", job.ID, a)
					report(t, err)
				}
				continue
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheHostsOwnModelWrites(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, hostSpec)
	s := b.talk("k")
	gateway(t, b, func(j store.HostJob) (store.HostAnswer, error) {
		if j.SessionKey != "k" || j.Model != "house" || j.System == "" || j.MaxTokens == 0 {
			t.Errorf("%+v", j)
		}
		return store.HostAnswer{Text: llmtest.Summary(j.Prompt, "by the host"), Model: "house-2", Finish: "stop", InputTokens: 9, OutputTokens: 8}, nil
	})
	if res, err := b.owed(s, 0); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, sum := range b.summaries(s) {
		if sum.Summarizer != "mine" || sum.Model != "house-2" || sum.InputTokens == 0 || !strings.Contains(sum.Text, "by the host") {
			t.Errorf("%+v", sum)
		}
	}
	if _, ok, err := b.store.LeaseHostJob(t.Context(), "t", "gw", nil, time.Minute); err != nil || ok {
		t.Errorf("a question is left: %v, %v", ok, err)
	}
}

func TestAQuestionThatNoGatewayTakesFallsToTheNext(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, good("x"))
	b := setup(t, func(c *summarizers.Config) { c.Lease = 50 * time.Millisecond }, hostSpec, model("next", srv.URL))
	s := b.talk("k")
	if res, err := b.owed(s, 0); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, sum := range b.summaries(s) {
		if sum.Summarizer != "next" {
			t.Errorf("%+v", sum)
		}
	}
	if _, ok, err := b.store.LeaseHostJob(t.Context(), "t", "gw", nil, time.Minute); err != nil || ok {
		t.Errorf("the question was not withdrawn: %v, %v", ok, err)
	}
}

func TestAGatewayThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, hostSpec)
	s := b.talk("k")
	gateway(t, b, func(store.HostJob) (store.HostAnswer, error) { return store.HostAnswer{}, errors.New("about Anna") })
	if _, err := b.owed(s, 0); err == nil || !strings.Contains(err.Error(), "the gateway reports a failure") || strings.Contains(err.Error(), "Anna") {
		t.Errorf("%v", err)
	}
	if b.session("k").Epoch != 1 {
		t.Error("the epoch moved")
	}
	// What a gateway says stays with the session.
	if got := b.state("mine"); strings.Contains(got.Err, "Anna") || got.Fault != "down" {
		t.Errorf("%+v", got)
	}
}

// TestAQuestionOutlivesWhoAsked: the worker that asked is gone, the answer is
// there when another one asks the same.
func TestAQuestionOutlivesWhoAsked(t *testing.T) {
	t.Parallel()
	a := setup(t, nil, hostSpec)
	s := a.talk("k")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := a.Owed(ctx, s, store.Debt{Budget: budget})
		gone <- err
	}()
	var job store.HostJob
	for ok := false; !ok; {
		var err error
		if job, ok, err = a.store.LeaseHostJob(t.Context(), "t", "gw", []string{"house"}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if ok, err := a.store.AnswerHostJob(t.Context(), "t", job.ID, store.HostAnswer{Text: llmtest.Summary(job.Prompt, "kept"), Finish: "stop"}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	b := node(t, a.url, nil, hostSpec)
	gateway(t, b, func(j store.HostJob) (store.HostAnswer, error) {
		if j.Prompt == job.Prompt {
			t.Error("the same question was put twice")
		}
		return store.HostAnswer{Text: llmtest.Summary(j.Prompt, "kept"), Finish: "stop"}, nil
	})
	if res, err := b.owed(s, 0); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := b.state("mine"); got.State != "closed" {
		t.Errorf("the caller's end was held against the gateway: %+v", got)
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	b := setup(t, nil, hostSpec)
	s := b.talk("k")
	ask := func(key, model string) uuid.UUID {
		t.Helper()
		id, err := b.store.AskHost(t.Context(), store.Question{
			Tenant: "t", SID: s.SID, Key: []byte(key), Summarizer: "mine", Model: model, System: "s", Prompt: "p", MaxTokens: 9,
			LeaseWithin: time.Minute, AnswerWithin: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	lease := func(tenant string, models []string, d time.Duration) (store.HostJob, bool) {
		t.Helper()
		j, ok, err := b.store.LeaseHostJob(t.Context(), tenant, "gw", models, d)
		if err != nil {
			t.Fatal(err)
		}
		return j, ok
	}
	id := ask("a", "house")
	if again := ask("a", "house"); again != id {
		t.Error("the same question is two jobs")
	}
	if _, ok := lease("other", nil, time.Minute); ok {
		t.Error("another tenant's question was given away")
	}
	if _, ok := lease("t", []string{"garden"}, time.Minute); ok {
		t.Error("a gateway got a question for a model that it lacks")
	}
	if j, ok := lease("t", []string{"garden", "house"}, 0); !ok || j.ID != id {
		t.Errorf("%+v, %v", j, ok)
	}
	// The lease was over at once: the next one asks.
	if j, ok := lease("t", nil, time.Minute); !ok || j.ID != id {
		t.Errorf("not leased again: %+v, %v", j, ok)
	}
	if _, ok := lease("t", nil, time.Minute); ok {
		t.Error("leased twice at one time")
	}
	for i, want := range []bool{true, false} {
		if ok, err := b.store.AnswerHostJob(t.Context(), "t", id, store.HostAnswer{Text: "x", Finish: "stop"}); err != nil || ok != want {
			t.Errorf("answer %d: %v, %v", i, ok, err)
		}
	}
	if _, err := b.store.AnswerHostJob(t.Context(), "other", id, store.HostAnswer{}); !errors.Is(err, store.ErrUnknownJob) {
		t.Errorf("another tenant: %v", err)
	}
	if err := b.store.DropHostJob(t.Context(), "t", id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.HostJob(t.Context(), "t", id); !errors.Is(err, store.ErrUnknownJob) {
		t.Error(err)
	}
}
