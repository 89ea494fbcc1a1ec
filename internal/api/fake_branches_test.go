package api_test

import (
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store"
)

type forked struct {
	session contextengine.Session
	to      string
	at      *int64
}

type rolledBack struct {
	session contextengine.Session
	child   string
}

func (f *fake) Fork(ctx context.Context, s contextengine.Session, to string, at *int64) (contextengine.StepResult, error) {
	return contextengine.StepResult{Head: 1, Epoch: 1}, f.begin(ctx, forked{s, to, at})
}

func (f *fake) PrepareSubagentSpawn(ctx context.Context, p contextengine.PrepareSubagentSpawnParams) (*contextengine.SubagentPreparation, error) {
	return &contextengine.SubagentPreparation{PreparationID: "p1"}, f.begin(ctx, p)
}

func (f *fake) RollbackSubagent(ctx context.Context, s contextengine.Session, child string) (bool, error) {
	return true, f.begin(ctx, rolledBack{s, child})
}

func (f *fake) OnSubagentEnded(ctx context.Context, p contextengine.SubagentEndedParams) (contextengine.SubagentEndedResult, error) {
	return contextengine.SubagentEndedResult{Ended: true}, f.begin(ctx, p)
}

func (f *fake) DescentOf(context.Context, string, uuid.UUID, string) (store.Descent, bool, error) {
	return store.Descent{ParentKey: "mother", Kind: store.KindForkedSubagent, ParentSeq: 4, EndReason: "completed"}, true, nil
}

func (f *fake) Children(context.Context, string, uuid.UUID, int) ([]store.Descent, error) {
	return []store.Descent{{SessionKey: "daughter", Kind: store.KindFork, ParentSeq: 2}}, nil
}
