package engine_test

import (
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/events"
)

// A host that ingests one by one ends its turns without messages. Told again, an
// end is the same one; after the next message, or with another report, it is not.
func TestASilentTurnEndsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	small, large := 1000, 2000
	end := func(budget *int, session string) {
		t.Helper()
		p := contextengine.AfterTurnParams{Session: on("s"), TokenBudget: budget}
		p.SessionID = session
		if _, err := b.AfterTurn(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []func(){
		func() { b.ingest("s", `{"role":"user","content":"a"}`); end(&small, "h") },
		func() { end(&large, "h") },
		func() { end(&large, "other") },
		func() { b.ingest("s", `{"role":"user","content":"a"}`); end(&small, "h") },
	} {
		step()
		if n := b.count("s", events.TurnCompleted); n != i+1 {
			t.Fatalf("step %d: %d turns", i, n)
		}
	}
	end(&small, "h")
	if n := b.count("s", events.TurnCompleted); n != 4 {
		t.Errorf("told twice, %d turns", n)
	}
}
