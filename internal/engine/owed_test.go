package engine_test

import (
	"testing"

	"github.com/engined/engined/internal/engine"
	"github.com/engined/engined/internal/store"
)

// TestDebtsArePaidBehindTheGuard: an engine that breaks over a debt is set aside,
// and from the next attempt the native runtime pays.
func TestDebtsArePaidBehindTheGuard(t *testing.T) {
	t.Parallel()
	log, reg, slot := builtins(t)
	b := &bundle{t: t, store: log.Store, Lossless: engine.NewLossless(engine.Config{Log: log})}
	t.Cleanup(func() { _ = b.Dispose(t.Context()) })
	b.ingest("s", told(12)...)
	s, err := log.Session(t.Context(), "t", "s")
	if err != nil {
		t.Fatal(err)
	}
	log.broken = true
	if _, err := slot.Owed(t.Context(), s, store.Debt{Budget: 4000}); err == nil || len(reg.Quarantines()) != 1 {
		t.Fatalf("%v, set aside: %+v", err, reg.Quarantines())
	}
	log.broken = false
	res, err := slot.Owed(t.Context(), s, store.Debt{Budget: 4000})
	if err != nil || !res.Compacted || res.Epoch != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	// Another engine's slot pays the log's debts too.
	b.ingest("s", told(12)...)
	if s, err = log.Session(t.Context(), "t", "s"); err != nil {
		t.Fatal(err)
	}
	if err := reg.Register(engine.Registration{ID: "acme", Owner: "acme", Factory: always(named("acme"))}); err != nil {
		t.Fatal(err)
	}
	if res, err := reg.Slot("acme").Owed(t.Context(), s, store.Debt{Budget: 4000}); err != nil || !res.Compacted {
		t.Errorf("%+v, %v", res, err)
	}
}
