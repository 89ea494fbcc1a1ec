package remote_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
)

// BenchmarkAssemble is the wire alone: a window of 200 messages of 1 KiB over
// loopback, from an engine that takes no time.
func BenchmarkAssemble(b *testing.B) {
	r := &recorder{}
	res := contextengine.AssembleResult{EstimatedTokens: 50_000}
	for i := range 200 {
		res.Messages = append(res.Messages, json.RawMessage(fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("x", 1000))))
	}
	r.tell(res, nil)
	c := serve(b, r, remote.HandlerOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Assemble(b.Context(), contextengine.AssembleParams{Session: on("k")}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIngest is one small message.
func BenchmarkIngest(b *testing.B) {
	r := &recorder{}
	r.tell(contextengine.IngestResult{Ingested: true}, nil)
	c := serve(b, r, remote.HandlerOptions{})
	b.ReportAllocs()
	for b.Loop() {
		p := contextengine.IngestParams{Session: on("k"), Message: json.RawMessage(`{"role":"user","content":"hello"}`)}
		if _, err := c.Ingest(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
