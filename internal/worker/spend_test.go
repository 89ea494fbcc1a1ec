package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/bus/bustest"
	"github.com/engined/engined/internal/compact/summarize/llmtest"
	"github.com/engined/engined/internal/store"
	"github.com/engined/engined/internal/testdb"
)

// TestTwoWorkersShareATenantsSpend: beyond it neither asks; the rule writes after
// the tries, as for any provider that is not asked, and a model redoes it once
// there is money again.
func TestTwoWorkersShareATenantsSpend(t *testing.T) {
	t.Parallel()
	provider := llmtest.OpenAI(t, func(_ int, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: llmtest.Summary(r.User, "x")}
	})
	url, srv := testdb.New(t), bustest.Start(t)
	const dollars = 0.000001
	nodes := []*node{modelNode(t, url, srv, provider.URL, dollars), modelNode(t, url, srv, provider.URL, dollars)}
	nodes[0].turn(t, "first", 1)
	nodes[0].awaitPaid(t)
	spent, err := nodes[1].store.SpentToday(t.Context(), "t", 1)
	if err != nil || !spent.Over() || spent.CostMicros == 0 || !spent.Resets.After(time.Now().Add(-time.Hour)) {
		t.Fatalf("%+v, %v", spent, err)
	}
	asked := len(provider.Requests())
	for i, key := range []string{"a", "b", "c", "d"} {
		nodes[i%2].turn(t, key, 1)
	}
	nodes[0].awaitPaid(t)
	if more := len(provider.Requests()) - asked; more > 0 {
		t.Fatalf("asked %d times beyond the limit", more)
	}
	if owed, err := nodes[0].store.OwedRedos(t.Context()); err != nil || owed != 4 {
		t.Fatalf("%d sessions owe a redo, want 4: %v", owed, err)
	}
	spenders, err := nodes[0].store.SpendersToday(t.Context(), 1)
	if err != nil || len(spenders) != 1 || !spenders[0].Over() {
		t.Errorf("%+v, %v", spenders, err)
	}
	// A summarizer without a price costs nothing and is not kept from anything.
	if st, err := nodes[0].store.EnterGate(t.Context(), "t", "m", store.SpendLimits{TenantMicros: 1, Free: true}, store.GatePolicy{}); err != nil || !st.Open {
		t.Errorf("%+v, %v", st, err)
	}

	own := int64(1e6)
	if err := nodes[0].store.SetOverride(t.Context(), access.Override{Tenant: "t", SpendMicros: &own}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		owed, err := nodes[1].store.OwedRedos(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if owed == 0 {
			break
		}
		<-tick.C
	}
	if len(provider.Requests()) == asked {
		t.Error("nobody was asked to write anew")
	}
}
