package summarizers

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/compact/summarize/hosted"
	"github.com/engined/engined/internal/compact/summarize/llm"
	"github.com/engined/engined/internal/store"
)

// board keeps one session's questions in the store.
type board struct {
	store      Store
	tenant     string
	sid        uuid.UUID
	summarizer string
}

func (b board) Ask(ctx context.Context, q hosted.Question) (string, error) {
	id, err := b.store.AskHost(ctx, store.Question{
		Tenant: b.tenant, SID: b.sid, Key: q.Key, Summarizer: b.summarizer, Model: q.Model,
		System: q.Call.System, Prompt: q.Call.User, MaxTokens: q.Call.MaxTokens, LeaseWithin: q.Lease, AnswerWithin: q.Timeout,
	})
	return id.String(), err
}

func (b board) State(ctx context.Context, id string) (hosted.State, error) {
	job, err := uuid.Parse(id)
	if err != nil {
		return hosted.State{}, err
	}
	s, err := b.store.HostJob(ctx, b.tenant, job)
	if err != nil {
		return hosted.State{}, err
	}
	out := hosted.State{Done: s.Answered || s.Failed, Unclaimed: s.Unclaimed}
	if s.Failed {
		out.Failed = cmp.Or(s.Err, "no reason")
	}
	out.Reply = llm.Reply{
		Text: s.Answer.Text, Model: s.Answer.Model, Finish: llm.Finish(s.Answer.Finish),
		InputTokens: s.Answer.InputTokens, OutputTokens: s.Answer.OutputTokens,
	}
	return out, nil
}

func (b board) Drop(ctx context.Context, id string) error {
	job, err := uuid.Parse(id)
	if err != nil {
		return err
	}
	return b.store.DropHostJob(ctx, b.tenant, job)
}
