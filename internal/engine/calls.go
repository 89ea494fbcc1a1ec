package engine

import (
	"context"
	"fmt"

	"github.com/engined/engined/contextengine"
)

// Ingest stores one message.
func (g *Guard) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	return call(ctx, g, guarded[contextengine.IngestResult]{
		op: OpIngest,
		bind: func(in *instance) bound[contextengine.IngestResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			p.Message = o.message(p.Message)
			return func(ctx context.Context) (contextengine.IngestResult, error) { return in.engine.Ingest(ctx, p) }
		},
	})
}

// IngestBatch stores several messages; one by one where the engine knows no
// batches.
func (g *Guard) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	return call(ctx, g, guarded[contextengine.IngestBatchResult]{
		op: OpIngestBatch, check: checkBatch(len(p.Messages)),
		bind: func(in *instance) bound[contextengine.IngestBatchResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			p.Messages, p.IdempotencyKeys = o.messages(p.Messages), o.strings(p.IdempotencyKeys)
			return func(ctx context.Context) (contextengine.IngestBatchResult, error) {
				return ingestBatch(ctx, in.engine, p)
			}
		},
	})
}

// CommitTurn stores an accepted turn once.
func (g *Guard) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	return call(ctx, g, guarded[contextengine.CommitTurnResult]{
		op: OpCommitTurn, check: checkCommitted,
		bind: func(in *instance) bound[contextengine.CommitTurnResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			p.Messages, p.Admission, p.Terminal = o.messages(p.Messages), o.message(p.Admission), o.message(p.Terminal)
			return func(ctx context.Context) (contextengine.CommitTurnResult, error) {
				return commitTurn(ctx, in.engine, p)
			}
		},
	})
}

// AfterTurn tells of a turn's end, or stores what it added.
func (g *Guard) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	return call(ctx, g, guarded[contextengine.AfterTurnResult]{
		op: OpAfterTurn, check: checkAfterTurn(len(p.Messages)),
		bind: func(in *instance) bound[contextengine.AfterTurnResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			p.Messages = o.messages(p.Messages)
			return func(ctx context.Context) (contextengine.AfterTurnResult, error) { return afterTurn(ctx, in.engine, p) }
		},
	})
}

// Bootstrap takes over a host's history.
func (g *Guard) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	return call(ctx, g, guarded[contextengine.BootstrapResult]{
		op: OpBootstrap, check: checkBootstrapped,
		bind: func(in *instance) bound[contextengine.BootstrapResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			p.Messages = o.messages(p.Messages)
			return func(ctx context.Context) (contextengine.BootstrapResult, error) { return bootstrap(ctx, in.engine, p) }
		},
	})
}

// Maintain does housekeeping.
func (g *Guard) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	return call(ctx, g, guarded[contextengine.MaintainResult]{
		op: OpMaintain, check: checkMaintained,
		bind: func(in *instance) bound[contextengine.MaintainResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			return func(ctx context.Context) (contextengine.MaintainResult, error) { return maintain(ctx, in.engine, p) }
		},
	})
}

// Assemble answers with a window.
func (g *Guard) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	return call(ctx, g, guarded[contextengine.AssembleResult]{
		op: OpAssemble, check: checkAssembled, foreign: checkForeign,
		bind: func(in *instance) bound[contextengine.AssembleResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			o.runtime(&p.SessionTarget, &p.RuntimeSettings, &p.RuntimeContext)
			if !in.info.Accepts(contextengine.ParamPrompt) {
				p.Prompt = ""
			}
			p.Messages, p.AvailableTools = o.messages(p.Messages), o.strings(p.AvailableTools)
			return func(ctx context.Context) (contextengine.AssembleResult, error) { return in.engine.Assemble(ctx, p) }
		},
	})
}

// PrepareSubagentSpawn readies a child. A failure keeps it from starting. The
// preparation's Rollback is isolated as the call is.
func (g *Guard) PrepareSubagentSpawn(ctx context.Context, p contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	return call(ctx, g, guarded[*contextengine.SubagentPreparation]{
		op: OpPrepare, rethrow: true,
		bind: func(in *instance) bound[*contextengine.SubagentPreparation] {
			o, p := in.own(), p
			o.session(&p.Session)
			return func(ctx context.Context) (*contextengine.SubagentPreparation, error) {
				prep, err := prepareSpawn(ctx, in.engine, p)
				if err != nil || prep == nil || prep.Rollback == nil {
					return prep, err
				}
				undo := func(ctx context.Context) error { return g.rollback(ctx, in, prep.Rollback) }
				if _, inLog := in.engine.(Brancher); !inLog {
					g.undo.put(p.Tenant, p.ChildSessionKey, undo)
				}
				return &contextengine.SubagentPreparation{PreparationID: prep.PreparationID, Rollback: undo}, nil
			}
		},
	})
}

// rollback undoes a preparation with the instance that made it, whatever
// serves now.
func (g *Guard) rollback(ctx context.Context, in *instance, undo func(context.Context) error) error {
	if err := aborted(ctx); err != nil {
		return err
	}
	if !in.enter() {
		return fmt.Errorf("the engine %q that prepared the sub-agent is gone", in.ID)
	}
	m := g.mount
	if in.ID != m.id {
		m = g.reg.fallback
	}
	_, err, broke := attempt(ctx, g, m, in, guarded[struct{}]{
		op: OpRollback,
		bind: func(*instance) bound[struct{}] {
			return func(ctx context.Context) (struct{}, error) { return struct{}{}, undo(ctx) }
		},
	})
	if broke == nil {
		return err
	}
	if !m.standing {
		_ = m.broken(in.generation, OpRollback, broke) // nil, as above
	}
	return &contextengine.EngineFailedError{EngineID: in.ID, Operation: string(OpRollback), Err: broke}
}

// OnSubagentEnded tells of a child's end.
func (g *Guard) OnSubagentEnded(ctx context.Context, p contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	if !p.Reason.Known() {
		return contextengine.SubagentEndedResult{}, &contextengine.InvalidError{Field: "reason", Reason: "deleted, completed, swept or released"}
	}
	return call(ctx, g, guarded[contextengine.SubagentEndedResult]{
		op: OpEnded,
		bind: func(in *instance) bound[contextengine.SubagentEndedResult] {
			o, p := in.own(), p
			o.session(&p.Session)
			return func(ctx context.Context) (contextengine.SubagentEndedResult, error) {
				return subagentEnded(ctx, in.engine, p)
			}
		},
	})
}

// Reset, Rewind and UndoCompaction go to the engine if it has them, else to the
// default engine, whose log they then change.
func (g *Guard) Reset(ctx context.Context, s contextengine.Session, keepFrom *int64, reason string) (contextengine.StepResult, error) {
	return extra(ctx, g, OpReset, func(ctx context.Context, e Stepper) (contextengine.StepResult, error) {
		return e.Reset(ctx, s, keepFrom, reason)
	})
}

// Rewind moves the leaf back to the newest message at or before a seq.
func (g *Guard) Rewind(ctx context.Context, s contextengine.Session, toSeq int64) (contextengine.StepResult, error) {
	return extra(ctx, g, OpRewind, func(ctx context.Context, e Stepper) (contextengine.StepResult, error) {
		return e.Rewind(ctx, s, toSeq)
	})
}

// UndoCompaction restores the window from before a compaction.
func (g *Guard) UndoCompaction(ctx context.Context, s contextengine.Session, epoch *int64) (contextengine.StepResult, error) {
	return extra(ctx, g, OpUndo, func(ctx context.Context, e Stepper) (contextengine.StepResult, error) {
		return e.UndoCompaction(ctx, s, epoch)
	})
}

// Fork begins a session with another one's window.
func (g *Guard) Fork(ctx context.Context, s contextengine.Session, newKey string, atSeq *int64) (contextengine.StepResult, error) {
	return extra(ctx, g, OpFork, func(ctx context.Context, e Brancher) (contextengine.StepResult, error) {
		return e.Fork(ctx, s, newKey, atSeq)
	})
}

// RollbackSubagent undoes a child's preparation: that of an engine of its own
// kind if this process asked one for it, else the log's.
func (g *Guard) RollbackSubagent(ctx context.Context, s contextengine.Session, childKey string) (bool, error) {
	if undo, ok := g.undo.take(s.Tenant, childKey); ok {
		if err := undo(ctx); err != nil {
			g.undo.put(s.Tenant, childKey, undo)
			return false, err
		}
		return true, nil
	}
	return extra(ctx, g, OpRollback, func(ctx context.Context, e Brancher) (bool, error) {
		return e.RollbackSubagent(ctx, s, childKey)
	})
}

// extra makes a call beside the contract of the engine if it has it, else of the
// default engine, whose log it then changes.
func extra[E, R any](ctx context.Context, g *Guard, op Operation, do func(context.Context, E) (R, error)) (R, error) {
	var none R
	c := guarded[R]{op: op, bind: func(in *instance) bound[R] {
		return func(ctx context.Context) (R, error) {
			e, ok := in.engine.(E)
			if !ok {
				return none, fmt.Errorf("the engine %q has no %s", in.ID, op)
			}
			return do(ctx, e)
		}
	}}
	if err := aborted(ctx); err != nil {
		return none, err
	}
	in, err := g.mount.acquire(ctx)
	if err != nil {
		return none, err
	}
	if in != nil {
		_, has := in.engine.(E)
		in.leave()
		if has {
			return call(ctx, g, c)
		}
	}
	return byDefault(ctx, g, c)
}
