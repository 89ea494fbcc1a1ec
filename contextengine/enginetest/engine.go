package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/engined/engined/contextengine"
)

// large is a budget that all messages of a test fit.
const large = 1_000_000

// engine is the engine of one test, and its sessions.
type engine struct {
	*testing.T
	contextengine.Engine
	tenant string
}

// on is a session of this test alone.
func (e *engine) on(name string) contextengine.Session {
	return contextengine.Session{Tenant: e.tenant, SessionKey: "agent:main:" + e.Name() + ":" + name}
}

// check ends the test on an error; an absent optional call skips it.
func (e *engine) check(err error) {
	e.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		e.Skip("the engine does not serve this call")
	}
	if err != nil {
		e.Fatal(err)
	}
}

func (e *engine) ingest(s contextengine.Session, messages ...json.RawMessage) {
	e.Helper()
	for _, m := range messages {
		res, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: s, Message: m})
		if err != nil || !res.Ingested {
			e.Fatalf("ingest %s: %+v %v", m, res, err)
		}
	}
}

// window is the session's, with a budget that fits everything.
func (e *engine) window(s contextengine.Session) []json.RawMessage {
	e.Helper()
	return e.assemble(s, large).Messages
}

func (e *engine) assemble(s contextengine.Session, budget int) contextengine.AssembleResult {
	e.Helper()
	res, err := e.Assemble(e.Context(), contextengine.AssembleParams{Session: s, TokenBudget: &budget})
	if err != nil {
		e.Fatal(err)
	}
	e.wellFormed(res)
	return res
}

// wellFormed holds what every window must be.
func (e *engine) wellFormed(res contextengine.AssembleResult) {
	e.Helper()
	if res.Messages == nil {
		e.Error("messages: nil, want a list")
	}
	if res.EstimatedTokens < 0 {
		e.Errorf("estimatedTokens: %d", res.EstimatedTokens)
	}
	for i, m := range res.Messages {
		if !json.Valid(m) || m[0] != '{' {
			e.Errorf("messages[%d] is not a JSON object: %s", i, m)
		}
	}
}

// same compares windows byte for byte.
func (e *engine) same(what string, got, want []json.RawMessage) {
	e.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			e.Errorf("%s: message %d is missing: %s", what, i, want[i])
		case i >= len(want):
			e.Errorf("%s: message %d is too many: %s", what, i, got[i])
		case !bytes.Equal(got[i], want[i]):
			e.Errorf("%s: message %d\n got %s\nwant %s", what, i, got[i], want[i])
		default:
			continue
		}
		return
	}
}

func user(text string) json.RawMessage {
	return fmt.Appendf(nil, `{"role":"user","content":%s}`, quoted(text))
}

func assistant(text string) json.RawMessage {
	return fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop"}`, quoted(text))
}

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

// talk is n exchanges of about 150 tokens each.
func talk(n int) []json.RawMessage {
	var out []json.RawMessage
	for i := range n {
		out = append(out,
			user(fmt.Sprintf("Question %d about /srv/app/file%03d.go. %s", i, i, strings.Repeat("It matters for the release. ", 8))),
			assistant(fmt.Sprintf("Answer %d: we keep it. %s", i, strings.Repeat("The reason is simple enough. ", 8))))
	}
	return out
}

// cancelled is a context that is over.
func (e *engine) cancelled() context.Context {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	return ctx
}
