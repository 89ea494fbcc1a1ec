package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/engined/engined/contextengine"
)

// Full is an engine with every call of the contract. A Guard makes one of any
// engine.
type Full interface {
	contextengine.Engine
	contextengine.Bootstrapper
	contextengine.BatchIngester
	contextengine.TurnCommitter
	contextengine.AfterTurner
	contextengine.Maintainer
	contextengine.SubagentHost
	contextengine.Disposer
}

// Stepper is an engine that can change what a window is made of.
type Stepper interface {
	Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, reason string) (contextengine.StepResult, error)
	Rewind(ctx context.Context, s contextengine.Session, toSeq int64) (contextengine.StepResult, error)
	UndoCompaction(ctx context.Context, s contextengine.Session, epoch *int64) (contextengine.StepResult, error)
}

// Brancher is an engine whose sessions can be forked, and whose preparations of
// sub-agents can be rolled back by whoever knows the child's key.
type Brancher interface {
	Fork(ctx context.Context, s contextengine.Session, newKey string, atSeq *int64) (contextengine.StepResult, error)
	RollbackSubagent(ctx context.Context, s contextengine.Session, childKey string) (bool, error)
}

// Transcriber is an engine that takes a host's transcript over.
type Transcriber interface {
	Transcript(ctx context.Context, p contextengine.TranscriptParams) (contextengine.TranscriptResult, error)
	TranscriptCursor(ctx context.Context, s contextengine.Session) (contextengine.TranscriptCursor, error)
}

// The functions below make a call that an engine may lack, or what a host does
// in its place. An engine lacks a call when it lacks the method or answers
// errors.ErrUnsupported, as one that stands for another does.

func lacks(err error) bool { return err != nil && safeIs(err, errors.ErrUnsupported) }

func bootstrap(ctx context.Context, e contextengine.Engine, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	if x, ok := e.(contextengine.Bootstrapper); ok {
		if res, err := x.Bootstrap(ctx, p); !lacks(err) {
			return res, err
		}
	}
	return contextengine.BootstrapResult{Reason: "the engine takes nothing over"}, nil
}

func maintain(ctx context.Context, e contextengine.Engine, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	if x, ok := e.(contextengine.Maintainer); ok {
		if res, err := x.Maintain(ctx, p); !lacks(err) {
			return res, err
		}
	}
	return contextengine.MaintainResult{Reason: "nothing to maintain"}, nil
}

// ingestBatch ingests one by one where it has to. That is not all or none: what
// came before an error stays, and a retry with the same keys skips it.
func ingestBatch(ctx context.Context, e contextengine.Engine, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	if x, ok := e.(contextengine.BatchIngester); ok {
		if res, err := x.IngestBatch(ctx, p); !lacks(err) {
			return res, err
		}
	}
	res := contextengine.IngestBatchResult{Seqs: make([]int64, len(p.Messages))}
	one := contextengine.IngestParams{Session: p.Session, Expectations: p.Expectations, IsHeartbeat: p.IsHeartbeat}
	for i, m := range p.Messages {
		one.Message, one.IdempotencyKey = m, ""
		if i < len(p.IdempotencyKeys) {
			one.IdempotencyKey = p.IdempotencyKeys[i]
		}
		r, err := e.Ingest(ctx, one)
		if err != nil {
			return res, err
		}
		if r.Ingested {
			res.IngestedCount++
		}
		res.Seqs[i], res.Head, res.Epoch = r.Seq, r.Head, r.Epoch
		one.Expectations = contextengine.Expectations{} // they were the first one's
	}
	return res, nil
}

// afterTurn ingests what the turn added where the engine does not hear of
// turns: the messages behind the fence, heartbeats marked.
func afterTurn(ctx context.Context, e contextengine.Engine, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	if x, ok := e.(contextengine.AfterTurner); ok {
		if res, err := x.AfterTurn(ctx, p); !lacks(err) {
			return res, err
		}
	}
	none := contextengine.AfterTurnResult{Compaction: contextengine.CompactionNone}
	if p.PrePromptMessageCount < 0 || p.PrePromptMessageCount > len(p.Messages) {
		return none, &contextengine.InvalidError{
			Field: "prePromptMessageCount", Reason: fmt.Sprintf("between 0 and the number of messages (%d)", len(p.Messages)),
		}
	}
	added := p.Messages[p.PrePromptMessageCount:]
	if len(added) == 0 {
		return none, nil
	}
	res, err := ingestBatch(ctx, e, contextengine.IngestBatchParams{
		Session: p.Session, Expectations: p.Expectations, Messages: added, IsHeartbeat: p.IsHeartbeat,
	})
	none.IngestedCount, none.Head, none.Epoch = res.IngestedCount, res.Head, res.Epoch
	return none, err
}

// commitTurn ingests the turn where the engine does not commit turns. Each
// message has a key made from the turn's, so that a retry adds nothing to an
// engine that heeds keys; then the end of the turn is told.
func commitTurn(ctx context.Context, e contextengine.Engine, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	if x, ok := e.(contextengine.TurnCommitter); ok {
		if res, err := x.CommitTurn(ctx, p); !lacks(err) {
			return res, err
		}
	}
	keys := make([]string, len(p.Messages))
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%d", p.AdvancementKey, i)
	}
	batch, err := ingestBatch(ctx, e, contextengine.IngestBatchParams{
		Session: p.Session, Expectations: p.Expectations, Messages: p.Messages, IsHeartbeat: p.IsHeartbeat, IdempotencyKeys: keys,
	})
	res := contextengine.CommitTurnResult{
		Status: contextengine.TurnCommitted, Head: batch.Head, Epoch: batch.Epoch, Compaction: contextengine.CompactionNone,
	}
	if err != nil {
		return res, err
	}
	if batch.IngestedCount == 0 {
		res.Status = contextengine.TurnDuplicate
		return res, nil
	}
	x, ok := e.(contextengine.AfterTurner)
	if !ok {
		return res, nil
	}
	end, err := x.AfterTurn(ctx, contextengine.AfterTurnParams{
		Session: p.Session, SessionTarget: p.SessionTarget, RuntimeSettings: p.RuntimeSettings, RuntimeContext: p.RuntimeContext,
		Messages: p.Messages, PrePromptMessageCount: len(p.Messages), IsHeartbeat: p.IsHeartbeat, TokenBudget: p.TokenBudget, Usage: p.Usage,
	})
	switch {
	case lacks(err):
		return res, nil
	case err != nil:
		return res, err
	}
	res.Compaction = end.Compaction
	return res, nil
}

func prepareSpawn(ctx context.Context, e contextengine.Engine, p contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	if x, ok := e.(contextengine.SubagentSpawner); ok {
		if res, err := x.PrepareSubagentSpawn(ctx, p); !lacks(err) {
			return res, err
		}
	}
	return nil, nil
}

func subagentEnded(ctx context.Context, e contextengine.Engine, p contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	if x, ok := e.(contextengine.SubagentEnder); ok {
		if res, err := x.OnSubagentEnded(ctx, p); !lacks(err) {
			return res, err
		}
	}
	return contextengine.SubagentEndedResult{}, nil
}

func dispose(ctx context.Context, e contextengine.Engine) error {
	x, ok := e.(contextengine.Disposer)
	if !ok {
		return nil
	}
	if err := x.Dispose(ctx); !lacks(err) {
		return err
	}
	return nil
}
