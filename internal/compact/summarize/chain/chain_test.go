package chain

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/engined/engined/internal/compact/summarize"
)

// scripted answers with a text or an error.
type scripted struct {
	name string
	do   func(ctx context.Context) (summarize.Result, error)
}

func (s scripted) Name() string    { return s.name }
func (s scripted) Version() string { return s.name + "-1" }

func (s scripted) Summarize(ctx context.Context, _ summarize.Request) (summarize.Result, error) {
	return s.do(ctx)
}

func says(name, text string) scripted {
	return scripted{name, func(context.Context) (summarize.Result, error) {
		return summarize.Result{Text: text, Usage: summarize.Usage{Calls: 1, InputTokens: 5}}, nil
	}}
}

func fails(name string, f summarize.Fault) scripted {
	return scripted{name, func(context.Context) (summarize.Result, error) {
		return summarize.Result{}, &summarize.Failure{Fault: f, Usage: summarize.Usage{Calls: 2, InputTokens: 7}, Err: errors.New("no")}
	}}
}

// gates is a gate that shuts some out and remembers what it hears.
type gates struct {
	mu    sync.Mutex
	shut  map[string]time.Time
	heard []string
}

func (g *gates) Enter(_ context.Context, _, name string) error {
	if until, ok := g.shut[name]; ok {
		return &ClosedError{Summarizer: name, Until: until, Why: "it failed"}
	}
	return nil
}

func (g *gates) Leave(_ context.Context, tenant, name string, _ summarize.Usage, f *summarize.Failure) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	how := "fine"
	if f != nil {
		how = string(f.Fault)
	}
	g.heard = append(g.heard, tenant+" "+name+" "+how)
	return nil
}

func request() summarize.Request {
	return summarize.Request{
		Level: 1, MaxTokens: 200, SourceTokens: 900, Estimate: func(s string) int { return 20 + len(s)/4 },
		Lines: []summarize.Line{{Seq: 1, Role: summarize.User, Text: "deploy the gateway"}},
	}
}

func TestMembersAreAskedInTurn(t *testing.T) {
	t.Parallel()
	g := &gates{shut: map[string]time.Time{"b": {}}}
	c := &Chain{Tenant: "t", Gate: g, Members: []summarize.Summarizer{fails("a", summarize.FaultDown), says("b", "of b"), says("c", "of c"), says("d", "of d")}}
	res, err := c.Summarize(t.Context(), request())
	if err != nil || res.Text != "of c" || res.Summarizer != "c" || res.Degraded {
		t.Fatalf("%+v, %v", res, err)
	}
	if res.Usage.Calls != 3 || res.Usage.InputTokens != 12 {
		t.Errorf("failed tries are not counted: %+v", res.Usage)
	}
	if diff := cmp.Diff([]string{"t a down", "t c fine"}, g.heard); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyWrites(t *testing.T) {
	t.Parallel()
	soon, late := time.Unix(1000, 0), time.Unix(2000, 0)
	g := &gates{shut: map[string]time.Time{"a": late, "b": soon}}
	c := &Chain{Gate: g, Members: []summarize.Summarizer{says("a", "x"), says("b", "x"), fails("c", summarize.FaultContent)}}
	_, err := c.Summarize(t.Context(), request())
	gone, ok := errors.AsType[*ExhaustedError](err)
	if !ok || !gone.Final() || !gone.RetryAt().Equal(soon) || len(gone.Tries) != 3 {
		t.Fatalf("%v", err)
	}
	c.LastResort = true
	res, err := c.Summarize(t.Context(), request())
	if err != nil || !res.Degraded || res.Summarizer != "extractive" || res.Text == "" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAListedRuleIsMarkedWhereAModelWasAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		members  []summarize.Summarizer
		degraded bool
	}{
		{[]summarize.Summarizer{fails("a", summarize.FaultDown), summarize.Extractive{}}, true},
		{[]summarize.Summarizer{summarize.Extractive{}}, false},
	} {
		g := &gates{}
		res, err := (&Chain{Gate: g, Members: tc.members}).Summarize(t.Context(), request())
		if err != nil || res.Degraded != tc.degraded || len(g.heard) != len(tc.members)-1 {
			t.Errorf("%+v, %v, heard %q", res, err, g.heard)
		}
	}
}

// TestAMemberThatHangsLeavesTimeToTheNext, within one deadline.
func TestAMemberThatHangsLeavesTimeToTheNext(t *testing.T) {
	t.Parallel()
	var first, whole time.Time
	c := &Chain{Members: []summarize.Summarizer{
		scripted{"hangs", func(ctx context.Context) (summarize.Result, error) {
			first, _ = ctx.Deadline()
			return summarize.Result{}, context.DeadlineExceeded
		}},
		scripted{"next", func(ctx context.Context) (summarize.Result, error) {
			whole, _ = ctx.Deadline()
			return summarize.Result{Text: "x"}, nil
		}},
	}}
	until := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), until)
	defer cancel()
	if _, err := c.Summarize(ctx, request()); err != nil {
		t.Fatal(err)
	}
	if left := until.Sub(first); left < 29*time.Minute || left > 31*time.Minute || !whole.Equal(until) {
		t.Errorf("the first had until %v, the next until %v, of %v", first, whole, until)
	}
}

func TestTheCallersEndIsHeldAgainstNobody(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	g := &gates{}
	c := &Chain{Tenant: "t", Gate: g, LastResort: true, Members: []summarize.Summarizer{scripted{"a", func(context.Context) (summarize.Result, error) {
		cancel()
		return summarize.Result{}, &summarize.Failure{Fault: summarize.FaultSlow, Err: ctx.Err()}
	}}, says("b", "x")}}
	if _, err := c.Summarize(ctx, request()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"t a abandoned"}, g.heard); diff != "" {
		t.Error(diff)
	}
}

func TestVersionNamesTheMembersAndNotTheLastResort(t *testing.T) {
	t.Parallel()
	v := func(last bool, members ...summarize.Summarizer) string {
		return (&Chain{Members: members, LastResort: last}).Version()
	}
	a, b := says("a", ""), says("b", "")
	if v(false, a, b) != v(true, a, b) || v(false, a, b) == v(false, b, a) || v(false, a) == v(false, a, b) {
		t.Error("drafts would be reused where they must not, or not where they may")
	}
}
