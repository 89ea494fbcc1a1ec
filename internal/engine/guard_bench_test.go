package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/engine"
)

// BenchmarkGuard is what the guard adds to a call that does nothing.
func BenchmarkGuard(b *testing.B) {
	body := json.RawMessage(`{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}`)
	still := still{}
	for owner, reg := range map[string]engine.Registration{
		"core":    {ID: "acme", Owner: engine.CoreOwner},
		"foreign": {ID: "acme", Owner: "remote:acme"},
	} {
		b.Run(owner, func(b *testing.B) {
			r := engine.NewRegistry(engine.RegistryConfig{})
			reg.Factory = always(still)
			if err := r.Register(reg); err != nil {
				b.Fatal(err)
			}
			slot := r.Slot("acme")
			p := contextengine.IngestParams{Session: on("s"), Message: body}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := slot.Ingest(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
			if err := r.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// still is an engine that does nothing and keeps nothing.
type still struct{}

func (still) Info() contextengine.Info { return contextengine.Info{ID: "acme", Name: "Still"} }

func (still) Ingest(context.Context, contextengine.IngestParams) (contextengine.IngestResult, error) {
	return contextengine.IngestResult{Ingested: true}, nil
}

func (still) Assemble(context.Context, contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	return contextengine.AssembleResult{Messages: []json.RawMessage{}}, nil
}

func (still) Compact(context.Context, contextengine.CompactParams) (contextengine.CompactResult, error) {
	return contextengine.CompactResult{OK: true}, nil
}
