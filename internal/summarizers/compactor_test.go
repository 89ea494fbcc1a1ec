package summarizers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/compact/summarize/redact"
	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/store/storetest"
	"github.com/engined/engined/internal/summarizers"
	"github.com/engined/engined/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is an engine whose summaries come from fake providers.
type bundle struct {
	t     *testing.T
	url   string
	store *store.Store
	set   *summarizers.Set
	*engine.Lossless
}

const after = 3

func setup(t *testing.T, mod func(*summarizers.Config), specs ...summarizers.Spec) *bundle {
	t.Helper()
	return node(t, testdb.New(t), mod, specs...)
}

func node(t *testing.T, url string, mod func(*summarizers.Config), specs ...summarizers.Spec) *bundle {
	t.Helper()
	st, err := storetest.Open(t, t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	cfg := summarizers.Config{Specs: specs, Store: st, Redact: redact.New(), Timeout: time.Minute, Idle: 10 * time.Second, Lease: 30 * time.Second}
	if mod != nil {
		mod(&cfg)
	}
	set, err := summarizers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, url: url, store: st, set: set}
	b.Lossless = engine.NewLossless(engine.Config{Log: st, Summarizers: set, LastResortAfter: after})
	t.Cleanup(func() { _ = b.Dispose(context.WithoutCancel(t.Context())) })
	return b
}

func model(name, url string) summarizers.Spec {
	return summarizers.Spec{Name: name, Kind: summarizers.OpenAI, Model: name + "-model", URL: url, Key: "k", Price: llm.Price{Input: 1, Output: 4}}
}

const budget = 12000

// talk fills a session to a little under its budget.
func (b *bundle) talk(key string) store.Session {
	b.t.Helper()
	p := contextengine.IngestBatchParams{Session: contextengine.Session{Tenant: "t", SessionKey: key}}
	for i := range 45 {
		p.Messages = append(p.Messages,
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"Please look at /srv/app/file%03d.go on 10.1.0.%d:8080. %s"}`, i, i, strings.Repeat("It matters for the release. ", 12))),
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"We decided to keep item %d. %s"}]}`, i, strings.Repeat("The reason is simple enough. ", 20))))
	}
	if _, err := b.IngestBatch(b.t.Context(), p); err != nil {
		b.t.Fatal(err)
	}
	return b.session(key)
}

func (b *bundle) session(key string) store.Session {
	b.t.Helper()
	s, err := b.store.Session(b.t.Context(), "t", key)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bundle) owed(s store.Session, failures int) (contextengine.CompactResult, error) {
	b.t.Helper()
	return b.Owed(b.t.Context(), s, store.Debt{Budget: budget, Failures: failures})
}

func (b *bundle) summaries(s store.Session) []events.SummaryBody {
	b.t.Helper()
	found, err := b.store.EventsOfType(b.t.Context(), s.Tenant, s.SID, events.SummaryCreated, 0, 1<<40, 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	out := make([]events.SummaryBody, len(found))
	for i := range found {
		if err := json.Unmarshal(found[i].Body, &out[i]); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

func (b *bundle) state(name string) store.SummarizerState {
	b.t.Helper()
	states, err := b.store.SummarizerStates(b.t.Context(), "t")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range states {
		if s.Name == name {
			return s
		}
	}
	return store.SummarizerState{}
}

func good(extra string) func(int, llmtest.Request) llmtest.Reply {
	return func(_ int, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Summary(r.User, extra)}
	}
}

func always(r llmtest.Reply) func(int, llmtest.Request) llmtest.Reply {
	return func(int, llmtest.Request) llmtest.Reply { return r }
}

// TestNothingJunkIsEverCommitted: a failed provider changes nothing, whatever it
// fails with, and the breaker learns of what is the provider's fault alone.
func TestNothingJunkIsEverCommitted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script func(int, llmtest.Request) llmtest.Reply
		fault  string
	}{
		"401":       {always(llmtest.Reply{Status: 401}), "access"},
		"403":       {always(llmtest.Reply{Status: 403}), "access"},
		"429":       {always(llmtest.Reply{Status: 429, Header: map[string]string{"Retry-After": "60"}}), "busy"},
		"500":       {always(llmtest.Reply{Status: 500}), "down"},
		"hang":      {always(llmtest.Reply{Text: "## Decisions\n- half", Hang: true}), "slow"},
		"cut":       {always(llmtest.Reply{Text: "## Decisions\n- half", Cut: true}), "down"},
		"empty":     {always(llmtest.Reply{}), ""},
		"refusal":   {always(llmtest.Reply{Refusal: true}), ""},
		"garbage":   {always(llmtest.Reply{Text: "}{\ufffd"}), ""},
		"error":     {always(llmtest.Reply{Text: "401 Unauthorized"}), ""},
		"truncated": {always(llmtest.Reply{Text: "## Decisions", Finish: "length"}), ""},
		"echo": {func(_ int, r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Text: r.User + "\n" + llmtest.Mark(r.User)}
		}, ""},
		"too long": {func(_ int, r llmtest.Request) llmtest.Reply {
			return llmtest.Reply{Text: llmtest.Summary(r.User, strings.Repeat("and so on ", 9000))}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.OpenAI(t, tc.script)
			b := setup(t, func(c *summarizers.Config) {
				if name == "hang" {
					c.Idle = 100 * time.Millisecond
				}
			}, model("m", srv.URL))
			s := b.talk("k")
			if res, err := b.owed(s, 0); err == nil {
				t.Fatalf("compacted: %+v", res)
			}
			now := b.session("k")
			if now.Epoch != 1 || now.Head != s.Head || len(b.summaries(s)) != 0 {
				t.Errorf("epoch %d, head %d, %d summaries", now.Epoch, now.Head, len(b.summaries(s)))
			}
			// An explicit call says so, and is no error of the engine.
			n := budget
			res, err := b.Compact(t.Context(), contextengine.CompactParams{Session: contextengine.Session{Tenant: "t", SessionKey: "k"}, TokenBudget: &n, Force: true})
			if err != nil || res.OK || res.Compacted || !strings.HasPrefix(res.Reason, "no summary: ") {
				t.Errorf("%+v, %v", res, err)
			}
			if got := b.state("m"); got.Fault != tc.fault || got.Today.Calls == 0 || got.Today.Failed == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestGoodSummariesAreCommittedWithTheirCost(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, good("the login said 401 Unauthorized, then 403 Forbidden"))
	b := setup(t, nil, model("m", srv.URL))
	s := b.talk("k")
	res, err := b.owed(s, 0)
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	sums := b.summaries(s)
	if len(sums) == 0 {
		t.Fatal("no summaries")
	}
	for _, sum := range sums {
		if sum.Summarizer != "m" || sum.Model != "m-model-served" || sum.PromptVersion != "v1" || sum.Degraded || sum.SourceHash == "" ||
			sum.InputTokens == 0 || sum.OutputTokens == 0 || sum.CostMicros == 0 || !strings.Contains(sum.Text, "401 Unauthorized") {
			t.Errorf("%+v", sum)
		}
	}
	if got := b.state("m"); got.State != "closed" || got.Today.Calls != int64(len(sums)) || got.Today.CostMicros == 0 {
		t.Errorf("%+v", got)
	}
}

func TestTheNextModelIsAskedAndTheTenantsChoiceHolds(t *testing.T) {
	t.Parallel()
	bad, fine := llmtest.OpenAI(t, always(llmtest.Reply{Status: 500})), llmtest.Anthropic(t, good("x"))
	second := summarizers.Spec{Name: "second", Kind: summarizers.Anthropic, Model: "c", URL: fine.URL, Key: "k"}
	b := setup(t, func(c *summarizers.Config) { c.Tenants = map[string][]string{"picky": {"second"}} }, model("first", bad.URL), second)
	s := b.talk("k")
	if res, err := b.owed(s, 0); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, sum := range b.summaries(s) {
		if sum.Summarizer != "second" || sum.Degraded {
			t.Errorf("%+v", sum)
		}
	}
	if got := b.set.Specs("picky"); len(got) != 1 || got[0].Name != "second" {
		t.Errorf("%+v", got)
	}
	if got := b.set.For("picky", s.SID, false).Name(); got != "second" {
		t.Error(got)
	}
}

// TestARuleWritesAtLastAndAModelRedoesIt: the last resort is marked, owed, and
// written anew once the provider answers.
func TestARuleWritesAtLastAndAModelRedoesIt(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	srv := llmtest.OpenAI(t, func(_ int, r llmtest.Request) llmtest.Reply {
		if !up.Load() {
			return llmtest.Reply{Status: 503}
		}
		return llmtest.Reply{Text: llmtest.Summary(r.User, "by a model")}
	})
	b := setup(t, func(c *summarizers.Config) { c.Gate = store.GatePolicy{Failures: 1000} }, model("m", srv.URL))
	s := b.talk("k")
	if _, err := b.owed(s, after-1); err == nil {
		t.Fatal("compacted before the tries were used up")
	}
	res, err := b.owed(s, after)
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	byRule := b.summaries(s)
	for _, sum := range byRule {
		if !sum.Degraded || sum.Summarizer != "extractive" {
			t.Errorf("%+v", sum)
		}
	}
	if n, err := b.store.OwedRedos(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d owed, %v", n, err)
	}
	// While it is down nothing changes.
	if _, err := b.Redo(t.Context(), b.session("k")); err == nil {
		t.Fatal("redone without a model")
	}
	up.Store(true)
	before := b.session("k")
	if done, err := b.Redo(t.Context(), before); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	now := b.session("k")
	if now.Epoch != before.Epoch+1 || now.LiveTokens() > before.LiveTokens() {
		t.Errorf("epoch %d → %d, tokens %d → %d", before.Epoch, now.Epoch, before.LiveTokens(), now.LiveTokens())
	}
	state, err := b.store.StateAsOf(t.Context(), "t", s.SID, now.Head)
	if err != nil {
		t.Fatal(err)
	}
	all := b.summaries(s)
	anew := all[len(byRule):]
	if len(anew) == 0 || len(state.Live) == 0 {
		t.Fatal("nothing was written anew")
	}
	for _, sum := range anew {
		if sum.Degraded || sum.Summarizer != "m" || !strings.Contains(sum.Text, "by a model") {
			t.Errorf("%+v", sum)
		}
	}
	if n, err := b.store.OwedRedos(t.Context()); err != nil || n != 0 {
		t.Errorf("%d owed, %v", n, err)
	}
	if done, err := b.Redo(t.Context(), now); err != nil || done {
		t.Errorf("redone again: %v, %v", done, err)
	}
}

func TestOverTheBudgetARuleWritesAtOnce(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, always(llmtest.Reply{Status: 500}))
	b := setup(t, nil, model("m", srv.URL))
	s := b.talk("k")
	res, err := b.Owed(t.Context(), s, store.Debt{Budget: 5000})
	if err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, sum := range b.summaries(s) {
		if !sum.Degraded {
			t.Errorf("%+v", sum)
		}
	}
}

// TestBreakerIsSharedAndHalfOpens: what one worker met keeps the others away, and
// one of them finds out when it is over.
func TestBreakerIsSharedAndHalfOpens(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, always(llmtest.Reply{Status: 401}))
	a := setup(t, nil, model("m", srv.URL))
	b := node(t, a.url, nil, model("m", srv.URL))
	s := a.talk("k")
	if _, err := a.owed(s, 0); err == nil {
		t.Fatal("compacted")
	}
	asked := len(srv.Requests())
	_, err := b.owed(s, 0)
	var gated interface{ RetryAt() time.Time }
	if err == nil || len(srv.Requests()) != asked || !errors.As(err, &gated) || gated.RetryAt().IsZero() {
		t.Fatalf("asked %d times more: %v", len(srv.Requests())-asked, err)
	}
	if got := a.state("m"); got.State != "open" || got.Fault != "access" {
		t.Errorf("%+v", got)
	}
	// Another tenant has its own.
	if st, err := a.store.EnterGate(t.Context(), "other", "m", store.SpendLimits{}, store.GatePolicy{}); err != nil || !st.Open {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestSpendLimit(t *testing.T) {
	t.Parallel()
	srv := llmtest.OpenAI(t, good("x"))
	spec := model("m", srv.URL)
	spec.DailyLimit = 0.000001
	b := setup(t, nil, spec)
	s := b.talk("k")
	if res, err := b.owed(s, 0); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	asked := len(srv.Requests())
	other := b.talk("other")
	if _, err := b.owed(other, 0); err == nil || !strings.Contains(err.Error(), "spend limit") {
		t.Errorf("%v", err)
	}
	if len(srv.Requests()) != asked {
		t.Error("asked beyond the limit")
	}
}

// TestFinishedDraftsOutliveAFailure: what was paid for is not asked for again,
// by whichever worker.
func TestFinishedDraftsOutliveAFailure(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	srv := llmtest.OpenAI(t, func(n int, r llmtest.Request) llmtest.Reply {
		if broken.Load() && n > 1 {
			return llmtest.Reply{Status: 500}
		}
		return llmtest.Reply{Text: llmtest.Summary(r.User, "x")}
	})
	lenient := func(c *summarizers.Config) { c.Gate = store.GatePolicy{Failures: 1000} }
	a := setup(t, lenient, model("m", srv.URL))
	a.talk("k")
	s := a.talk("k")
	small := store.Debt{Budget: 22000}
	res, err := a.Compact(t.Context(), contextengine.CompactParams{
		Session: contextengine.Session{Tenant: "t", SessionKey: "k"}, TokenBudget: new(22000), DryRun: true,
	})
	if err != nil || res.Result == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	var plan struct {
		Calls               int   `json:"calls"`
		InputTokens         int   `json:"inputTokens"`
		EstimatedCostMicros int64 `json:"estimatedCostMicros"`
	}
	if err := json.Unmarshal(res.Result.Details, &plan); err != nil || plan.Calls < 2 || plan.InputTokens == 0 || plan.EstimatedCostMicros == 0 {
		t.Fatalf("%+v, %v: %s", plan, err, res.Result.Details)
	}
	if _, err := a.Owed(t.Context(), s, small); err == nil {
		t.Fatal("compacted")
	}
	asked := len(srv.Requests())
	broken.Store(false)
	b := node(t, a.url, lenient, model("m", srv.URL))
	if res, err := b.Owed(t.Context(), s, small); err != nil || !res.Compacted {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := len(srv.Requests()) - asked; got != plan.Calls-1 {
		t.Errorf("asked %d times for the rest of %d summaries", got, plan.Calls)
	}
}
