package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/engined/engined/contextengine"
)

// calls are all calls that the engine has, with plain parameters.
func (e *engine) calls(s contextengine.Session) map[string]func(context.Context) error {
	one := []json.RawMessage{user("by a call")}
	calls := map[string]func(context.Context) error{
		"ingest": func(ctx context.Context) error {
			_, err := e.Ingest(ctx, contextengine.IngestParams{Session: s, Message: one[0]})
			return err
		},
		"assemble": func(ctx context.Context) error {
			_, err := e.Assemble(ctx, contextengine.AssembleParams{Session: s})
			return err
		},
		"compact": func(ctx context.Context) error {
			_, err := e.Compact(ctx, contextengine.CompactParams{Session: s})
			return err
		},
	}
	if b, ok := e.Engine.(contextengine.BatchIngester); ok {
		calls["ingestBatch"] = func(ctx context.Context) error {
			_, err := b.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: one})
			return err
		}
	}
	if b, ok := e.Engine.(contextengine.Bootstrapper); ok {
		calls["bootstrap"] = func(ctx context.Context) error {
			_, err := b.Bootstrap(ctx, contextengine.BootstrapParams{Session: s, Messages: one})
			return err
		}
	}
	if c, ok := e.Engine.(contextengine.TurnCommitter); ok {
		calls["commitTurn"] = func(ctx context.Context) error {
			_, err := c.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "t", Messages: one})
			return err
		}
	}
	if a, ok := e.Engine.(contextengine.AfterTurner); ok {
		calls["afterTurn"] = func(ctx context.Context) error {
			_, err := a.AfterTurn(ctx, contextengine.AfterTurnParams{Session: s, Messages: one})
			return err
		}
	}
	return calls
}

// oddParametersAreRefused with an error of the contract, or answered; no value
// makes an engine panic or look broken.
func oddParametersAreRefused(e *engine) {
	ctx, s := e.Context(), e.on("a")
	ok := func(what string, err error) {
		e.Helper()
		var invalid *contextengine.InvalidError
		if err != nil && !errors.As(err, &invalid) && !errors.Is(err, errors.ErrUnsupported) {
			e.Errorf("%s: %T %v, want an *InvalidError", what, err, err)
		}
	}
	refused := func(what string, err error) {
		e.Helper()
		if err == nil {
			e.Errorf("%s was accepted", what)
		}
		ok(what, err)
	}
	for _, m := range []string{"", "null", `"text"`, "7", "[]", "{", `{"a":1}}`, "{\"role\":\"user\",\"content\":\"\xff\"}"} {
		_, err := e.Ingest(ctx, contextengine.IngestParams{Session: s, Message: json.RawMessage(m)})
		refused("the message "+m, err)
	}
	for _, m := range []string{`{}`, `{"role":7}`, `{"role":"user"}`, `{"role":"","content":null}`, `{"role":"alien","content":{"a":[]}}`, `{"role":"user","content":[null,7,{}]}`} {
		_, err := e.Ingest(ctx, contextengine.IngestParams{Session: e.on("odd"), Message: json.RawMessage(m)})
		ok("the message "+m, err)
	}
	_, err := e.Assemble(ctx, contextengine.AssembleParams{Session: e.on("odd")})
	ok("a window of odd messages", err)
	for _, n := range []int{0, -1, math.MinInt64, math.MaxInt64} {
		_, err := e.Assemble(ctx, contextengine.AssembleParams{Session: s, TokenBudget: &n})
		ok("assemble with an odd budget", err)
		_, err = e.Compact(ctx, contextengine.CompactParams{Session: s, TokenBudget: &n, CurrentTokenCount: &n, CompactionTarget: "moon"})
		ok("compact with an odd budget", err)
	}
	_, err = e.Assemble(ctx, contextengine.AssembleParams{Session: s, Messages: []json.RawMessage{nil}, AvailableTools: []string{""}})
	ok("assemble with a nil message", err)
	e.oddOptional(ok)
}

// oddKeysAreRefused: a session key is 1 to 512 bytes of UTF-8 without NUL.
func oddKeysAreRefused(e *engine) {
	for _, key := range []string{"", "\xff", "a\x00b", strings.Repeat("k", 513)} {
		s := e.on("a")
		s.SessionKey = key
		var invalid *contextengine.InvalidError
		if _, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: s, Message: user("x")}); !errors.As(err, &invalid) {
			e.Errorf("ingest with the key %.10q: %v, want an *InvalidError", key, err)
		}
		if _, err := e.Assemble(e.Context(), contextengine.AssembleParams{Session: s}); !errors.As(err, &invalid) {
			e.Errorf("assemble with the key %.10q: %v, want an *InvalidError", key, err)
		}
	}
}

func (e *engine) oddOptional(ok func(string, error)) {
	ctx, s := e.Context(), e.on("a")
	if b, is := e.Engine.(contextengine.BatchIngester); is {
		_, err := b.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s})
		ok("an empty batch", err)
		_, err = b.IngestBatch(ctx, contextengine.IngestBatchParams{Session: s, Messages: []json.RawMessage{nil}, IdempotencyKeys: []string{"a", "b"}})
		ok("an odd batch", err)
	}
	if c, is := e.Engine.(contextengine.TurnCommitter); is {
		_, err := c.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s})
		ok("an empty turn", err)
		_, err = c.CommitTurn(ctx, contextengine.CommitTurnParams{Session: s, AdvancementKey: "k", Messages: []json.RawMessage{user("x")}, Admission: json.RawMessage(`7`)})
		ok("an odd anchor", err)
	}
	if a, is := e.Engine.(contextengine.AfterTurner); is {
		for _, fence := range []int{-1, 1, math.MaxInt64} {
			_, err := a.AfterTurn(ctx, contextengine.AfterTurnParams{Session: s, PrePromptMessageCount: fence})
			ok("a fence beyond the messages", err)
		}
	}
	if b, is := e.Engine.(contextengine.Bootstrapper); is {
		_, err := b.Bootstrap(ctx, contextengine.BootstrapParams{Session: s, Messages: []json.RawMessage{json.RawMessage(`[]`)}})
		ok("an odd history", err)
	}
}
