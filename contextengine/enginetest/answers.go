package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/engined/engined/contextengine"
)

func infoIsConstant(e *engine) {
	first := e.Info()
	if strings.TrimSpace(first.ID) == "" || strings.TrimSpace(first.Name) == "" {
		e.Errorf("id and name must not be blank: %+v", first)
	}
	e.ingest(e.on("a"), user("hello"))
	if again := e.Info(); !reflect.DeepEqual(first, again) {
		e.Errorf("info changed from %+v to %+v", first, again)
	}
}

func ingestAnswers(e *engine) {
	res, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: e.on("a"), Message: user("hello"), IsHeartbeat: true})
	e.check(err)
	if !res.Ingested || res.Duplicate {
		e.Errorf("a new message: %+v", res)
	}
}

func assembleAnswers(e *engine) {
	s := e.on("a")
	e.ingest(s, user("hello"), assistant("hi"))
	first, again := e.assemble(s, large), e.assemble(s, large)
	e.same("the same call again", again.Messages, first.Messages)
	if first.EstimatedTokens != again.EstimatedTokens {
		e.Errorf("estimates of one window: %d and %d", first.EstimatedTokens, again.EstimatedTokens)
	}
	res, err := e.Assemble(e.Context(), contextengine.AssembleParams{
		Session: s, Messages: []json.RawMessage{user("hint")}, Prompt: "hint", Model: "m", AvailableTools: []string{"read"}, CitationsMode: "auto",
	})
	e.check(err)
	e.wellFormed(res)
}

func unknownSessionIsEmpty(e *engine) {
	s := e.on("nobody")
	for range 2 { // asking makes no session
		if got := e.assemble(s, large); len(got.Messages) != 0 || got.OverBudget != nil {
			e.Errorf("the window of an unknown session: %+v", got)
		}
		res, err := e.Compact(e.Context(), contextengine.CompactParams{Session: s, Force: true})
		if err != nil || res.Compacted || res.Reason == "" {
			e.Errorf("compacting an unknown session: %+v %v", res, err)
		}
	}
}

func compactAnswers(e *engine) {
	s := e.on("a")
	e.ingest(s, user("hello"))
	budget, count := 10_000, 20_000
	for _, p := range []contextengine.CompactParams{
		{Session: s},
		{Session: s, Force: true, TokenBudget: &budget, CurrentTokenCount: &count, CompactionTarget: contextengine.TargetBudget},
		{Session: s, Force: true, CompactionTarget: contextengine.TargetThreshold, CustomInstructions: "mind the <names>"},
	} {
		res, err := e.Compact(e.Context(), p)
		e.check(err)
		e.compaction(res)
	}
	e.same("the newest message after a compaction", last(e.window(s), 1), []json.RawMessage{user("hello")})
}

// compaction holds what every answer of Compact must be.
func (e *engine) compaction(res contextengine.CompactResult) {
	e.Helper()
	switch {
	case res.Compacted && (!res.OK || res.Result == nil):
		e.Errorf("compacted, but not ok or without a result: %+v", res)
	case res.Compacted && res.Result.TokensAfter >= res.Result.TokensBefore:
		e.Errorf("compacted from %d to %d tokens", res.Result.TokensBefore, res.Result.TokensAfter)
	case !res.Compacted && res.Reason == "":
		e.Errorf("not compacted for no reason: %+v", res)
	}
}

func last(m []json.RawMessage, n int) []json.RawMessage { return m[max(0, len(m)-n):] }

func maintainAnswers(e *engine) {
	m, ok := e.Engine.(contextengine.Maintainer)
	if !ok {
		e.Skip("optional")
	}
	s := e.on("a")
	for _, reason := range []string{contextengine.MaintainAfterBootstrap, contextengine.MaintainAfterTurn, contextengine.MaintainAfterCompaction, ""} {
		res, err := m.Maintain(e.Context(), contextengine.MaintainParams{Session: s, Reason: reason})
		e.check(err)
		if res.BytesFreed < 0 || res.RewrittenEntries < 0 || res.Changed != (res.RewrittenEntries > 0) {
			e.Errorf("maintain: %+v", res)
		}
		e.ingest(s, user("hello"))
	}
}

func subagentsAnswer(e *engine) {
	parent := e.on("parent")
	if h, ok := e.Engine.(contextengine.SubagentSpawner); ok {
		e.ingest(parent, user("hello"))
		p, err := h.PrepareSubagentSpawn(e.Context(), contextengine.PrepareSubagentSpawnParams{
			Session: parent, ChildSessionKey: parent.SessionKey + ":child", ContextMode: contextengine.ContextIsolated,
		})
		e.check(err)
		if p != nil && p.Rollback != nil {
			if err := p.Rollback(e.Context()); err != nil {
				e.Errorf("rollback: %v", err)
			}
		}
	}
	if h, ok := e.Engine.(contextengine.SubagentEnder); ok {
		_, err := h.OnSubagentEnded(e.Context(), contextengine.SubagentEndedParams{
			Session: parent, ChildSessionKey: parent.SessionKey + ":stranger", Reason: contextengine.SubagentReleased,
		})
		if err != nil && !errors.Is(err, contextengine.ErrUnknownSession) {
			e.check(err)
		}
	}
}

// cancelledCallsStop: a call whose caller has given up ends with the context's
// error and stores nothing.
func cancelledCallsStop(e *engine) {
	s := e.on("a")
	e.ingest(s, user("before"))
	before := e.window(s)
	for op, call := range e.calls(s) {
		if err := call(e.cancelled()); !errors.Is(err, context.Canceled) && !errors.Is(err, errors.ErrUnsupported) {
			e.Errorf("%s: %v, want the context's error", op, err)
		}
	}
	e.same("after cancelled calls", e.window(s), before)
}

// parametersAreLeftAlone: an engine does not change what it is given.
func parametersAreLeftAlone(e *engine) {
	s := e.on("a")
	given := []json.RawMessage{json.RawMessage(`{ "role" : "user", "content":"<&>" }`), assistant("b")}
	kept := []json.RawMessage{bytes.Clone(given[0]), bytes.Clone(given[1])}
	_, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: s, Message: given[0]})
	e.check(err)
	_, err = e.Assemble(e.Context(), contextengine.AssembleParams{Session: s, Messages: given})
	e.check(err)
	if b, ok := e.Engine.(contextengine.BatchIngester); ok {
		if _, err := b.IngestBatch(e.Context(), contextengine.IngestBatchParams{Session: s, Messages: given}); !errors.Is(err, errors.ErrUnsupported) {
			e.check(err)
		}
	}
	e.same("what was given", given, kept)
}
