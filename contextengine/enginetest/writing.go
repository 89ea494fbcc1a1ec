package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
)

func idempotencyKeysHold(e *engine) {
	p := contextengine.IngestParams{Session: e.on("a"), Message: user("hello"), IdempotencyKey: "k1"}
	first, err := e.Ingest(e.Context(), p)
	e.check(err)
	again, err := e.Ingest(e.Context(), p)
	e.check(err)
	if !first.Ingested || again.Ingested || !again.Duplicate || again.Seq != first.Seq {
		e.Errorf("first %+v, again %+v", first, again)
	}
	p.Message = user("other")
	var conflict *contextengine.IdempotencyConflictError
	if res, err := e.Ingest(e.Context(), p); !errors.As(err, &conflict) {
		e.Errorf("another message under the key: %+v %v", res, err)
	}
	e.same("the window", e.window(p.Session), []json.RawMessage{user("hello")})
}

func staleHeadsAreRefused(e *engine) {
	s := e.on("a")
	first, err := e.Ingest(e.Context(), contextengine.IngestParams{Session: s, Message: user("one")})
	e.check(err)
	wrong := first.Head + 7
	p := contextengine.IngestParams{Session: s, Message: user("two"), Expectations: contextengine.Expectations{ExpectedHead: &wrong}}
	var stale *contextengine.StaleHeadError
	if res, err := e.Ingest(e.Context(), p); !errors.As(err, &stale) || stale.Head != first.Head || stale.Expected != wrong {
		e.Errorf("a stale head: %+v %v", res, err)
	}
	p.ExpectedHead = &first.Head
	_, err = e.Ingest(e.Context(), p)
	e.check(err)
	e.same("the window", e.window(s), []json.RawMessage{user("one"), user("two")})
}

// batchesAreWhole: in order, and all or none.
func batchesAreWhole(e *engine) {
	b, ok := e.Engine.(contextengine.BatchIngester)
	if !ok {
		e.Skip("optional")
	}
	s := e.on("a")
	messages := append(talk(5), verbatim()...)
	res, err := b.IngestBatch(e.Context(), contextengine.IngestBatchParams{Session: s, Messages: messages})
	e.check(err)
	if res.IngestedCount != len(messages) {
		e.Errorf("%+v, want %d ingested", res, len(messages))
	}
	for i := 1; i < len(res.Seqs); i++ {
		if res.Seqs[i] <= res.Seqs[i-1] {
			e.Errorf("seqs are not in order: %v", res.Seqs)
			break
		}
	}
	bad := []json.RawMessage{user("good"), json.RawMessage(`"no object"`)}
	if res, err := b.IngestBatch(e.Context(), contextengine.IngestBatchParams{Session: s, Messages: bad}); err == nil {
		e.Errorf("a batch with a bad item: %+v", res)
	}
	e.same("the window", e.window(s), messages)
}

func turnsAreCommittedOnce(e *engine) {
	c, ok := e.Engine.(contextengine.TurnCommitter)
	if !ok {
		e.Skip("optional")
	}
	turn := contextengine.CommitTurnParams{
		Session: e.on("a"), AdvancementKey: "turn-1", Messages: []json.RawMessage{user("hi"), assistant("hello")},
		Admission: json.RawMessage(`{"entryId":"e1","role":"user"}`), Terminal: json.RawMessage(`{"entryId":"e2"}`),
		RuntimeContext: &contextengine.RuntimeContext{Provider: "p", ModelID: "m"},
	}
	for i, want := range []contextengine.TurnStatus{contextengine.TurnCommitted, contextengine.TurnDuplicate, contextengine.TurnDuplicate} {
		res, err := c.CommitTurn(e.Context(), turn)
		e.check(err)
		if res.Status != want {
			e.Errorf("commit %d: %+v, want %s", i, res, want)
		}
	}
	other := turn
	other.Messages = []json.RawMessage{user("hi"), assistant("something else")}
	if res, err := c.CommitTurn(e.Context(), other); err == nil {
		e.Errorf("another turn under the key: %+v", res)
	}
	other.AdvancementKey, other.Admission, other.Terminal = "turn-2", nil, nil
	_, err := c.CommitTurn(e.Context(), other)
	e.check(err)
	e.same("the window", e.window(turn.Session), append(turn.Messages, other.Messages...))
}

// afterTurnStoresWhatIsNew: what stands behind the fence, and only that.
func afterTurnStoresWhatIsNew(e *engine) {
	a, ok := e.Engine.(contextengine.AfterTurner)
	if !ok {
		e.Skip("optional")
	}
	s := e.on("a")
	budget := 100_000
	old, turn := []json.RawMessage{user("one"), assistant("two")}, []json.RawMessage{user("three"), assistant("four")}
	e.ingest(s, old...)
	messages := append(append([]json.RawMessage{}, old...), turn...)
	_, err := a.AfterTurn(e.Context(), contextengine.AfterTurnParams{
		Session: s, Messages: messages, PrePromptMessageCount: len(old), TokenBudget: &budget, Usage: &contextengine.Usage{Input: 40, Output: 5},
	})
	e.check(err)
	e.same("the window", e.window(s), messages)
	_, err = a.AfterTurn(e.Context(), contextengine.AfterTurnParams{Session: s, Messages: messages, PrePromptMessageCount: len(messages)})
	e.check(err)
	e.same("the window after a turn that added nothing", e.window(s), messages)
}

func bootstrapSkipsWhatIsKnown(e *engine) {
	b, ok := e.Engine.(contextengine.Bootstrapper)
	if !ok {
		e.Skip("optional")
	}
	s := e.on("a")
	s.SessionID = "host-session-1"
	history := talk(6)
	for i, upto := range []int{8, 8, 12, 12} {
		res, err := b.Bootstrap(e.Context(), contextengine.BootstrapParams{Session: s, Messages: history[:upto]})
		e.check(err)
		if !res.Bootstrapped && res.Reason == "" {
			e.Errorf("bootstrap %d: %+v", i, res)
		}
		e.same(fmt.Sprintf("the window after bootstrap %d", i), e.window(s), history[:upto])
	}
}
