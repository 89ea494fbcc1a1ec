package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/engined/engined/contextengine"
)

// Commit tells the engine of an accepted turn, by the first call of these that
// it has: CommitTurn, AfterTurn, IngestBatch, Ingest for each message. Turn does
// it by itself; call it for a turn whose CommitErr is set. To commit a turn twice
// is harmless wherever the engine knows keys.
func (h *Host) Commit(ctx context.Context, t Turn) error {
	if len(t.Messages) == 0 || t.ID == "" {
		return &contextengine.InvalidError{Field: "messages", Reason: "a turn has an id and messages"}
	}
	for _, way := range []func(context.Context, Turn) error{h.commitTurn, h.afterTurn, h.ingestBatch} {
		if err := way(ctx, t); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return h.ingest(ctx, t)
}

func (h *Host) commitTurn(ctx context.Context, t Turn) error {
	c, ok := h.cfg.Engine.(contextengine.TurnCommitter)
	if !ok {
		return errors.ErrUnsupported
	}
	p := contextengine.CommitTurnParams{
		Session: t.Session, AdvancementKey: t.ID, Messages: t.Messages, IsHeartbeat: t.IsHeartbeat,
		TokenBudget: number(t.TokenBudget), Usage: t.Usage, RuntimeContext: h.facts(t),
	}
	res, err := await(ctx, "commit", h.cfg.Limits.EngineTimeout, func(ctx context.Context) (contextengine.CommitTurnResult, error) {
		return c.CommitTurn(ctx, p)
	})
	if err != nil {
		return err
	}
	switch res.Status {
	case contextengine.TurnCommitted, contextengine.TurnDuplicate:
		return nil
	}
	return fmt.Errorf("invalid commitTurn result status: %q", res.Status)
}

func (h *Host) afterTurn(ctx context.Context, t Turn) error {
	a, ok := h.cfg.Engine.(contextengine.AfterTurner)
	if !ok {
		return errors.ErrUnsupported
	}
	p := contextengine.AfterTurnParams{
		Session: t.Session, Messages: slices.Concat(t.History, t.Messages), PrePromptMessageCount: len(t.History),
		IsHeartbeat: t.IsHeartbeat, TokenBudget: number(t.TokenBudget), Usage: t.Usage, RuntimeContext: h.facts(t),
	}
	_, err := await(ctx, "after turn", h.cfg.Limits.EngineTimeout, func(ctx context.Context) (contextengine.AfterTurnResult, error) {
		return a.AfterTurn(ctx, p)
	})
	return err
}

func (h *Host) ingestBatch(ctx context.Context, t Turn) error {
	b, ok := h.cfg.Engine.(contextengine.BatchIngester)
	if !ok {
		return errors.ErrUnsupported
	}
	p := contextengine.IngestBatchParams{Session: t.Session, Messages: t.Messages, IsHeartbeat: t.IsHeartbeat}
	for i := range t.Messages {
		p.IdempotencyKeys = append(p.IdempotencyKeys, t.key(i))
	}
	_, err := await(ctx, "ingest batch", h.cfg.Limits.EngineTimeout, func(ctx context.Context) (contextengine.IngestBatchResult, error) {
		return b.IngestBatch(ctx, p)
	})
	return err
}

func (h *Host) ingest(ctx context.Context, t Turn) error {
	for i, m := range t.Messages {
		if err := h.ingestOne(ctx, t, i, m); err != nil {
			return fmt.Errorf("message %d of %d: %w", i+1, len(t.Messages), err)
		}
	}
	return nil
}

func (h *Host) ingestOne(ctx context.Context, t Turn, i int, m json.RawMessage) error {
	p := contextengine.IngestParams{Session: t.Session, Message: m, IsHeartbeat: t.IsHeartbeat, IdempotencyKey: t.key(i)}
	_, err := await(ctx, "ingest", h.cfg.Limits.EngineTimeout, func(ctx context.Context) (contextengine.IngestResult, error) {
		return h.cfg.Engine.Ingest(ctx, p)
	})
	return err
}

// key makes storing a message of the turn once more harmless.
func (t Turn) key(i int) string { return t.ID + "/" + strconv.Itoa(i) }

// facts are what may be kept of the run.
func (h *Host) facts(t Turn) *contextengine.RuntimeContext {
	if !h.info.Accepts(contextengine.ParamRuntimeContext) {
		return nil
	}
	return &contextengine.RuntimeContext{
		Provider: t.Provider, ModelID: t.Model, ModelContextWindow: number(t.ContextWindow), TokenBudget: number(t.TokenBudget),
	}
}
