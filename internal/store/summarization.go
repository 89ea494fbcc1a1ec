package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// ErrUnknownJob: no such question, or its answer was taken already.
var ErrUnknownJob = errors.New("no such summarization job")

// Question is one for a host's own model.
type Question struct {
	Tenant string
	SID    uuid.UUID
	// Key is the hash of the question: asked again, it is the same job.
	Key                       []byte
	Summarizer, Model         string
	System, Prompt            string
	MaxTokens                 int
	LeaseWithin, AnswerWithin time.Duration
}

// AskHost puts a question for a gateway to take.
func (s *Store) AskHost(ctx context.Context, q Question) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, err
	}
	open := s.opener(q.Tenant, q.SID)
	if q.Key, err = open.name(ctx, q.Key); errors.Is(err, vault.ErrKeyGone) {
		return uuid.Nil, contextengine.ErrUnknownSession // an erasure destroyed it
	} else if err != nil {
		return uuid.Nil, err
	}
	if q.System, _, err = open.sealJob(ctx, jobField(q.Key, "system"), q.System); err != nil {
		return uuid.Nil, err
	}
	var sealed bool
	if q.Prompt, sealed, err = open.sealJob(ctx, jobField(q.Key, "prompt"), q.Prompt); err != nil {
		return uuid.Nil, err
	}
	got, err := s.of(q.Tenant).AskJob(ctx, db.AskJobParams{
		TenantID: q.Tenant, ID: id, SID: q.SID, Key: q.Key, Summarizer: q.Summarizer, Model: q.Model, System: q.System,
		Prompt: q.Prompt, MaxTokens: int32(q.MaxTokens), LeaseSeconds: q.LeaseWithin.Seconds(), DeadlineSeconds: q.AnswerWithin.Seconds(), Sealed: sealed,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, contextengine.ErrUnknownSession
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("summarization job: %w", errUnavailable(err))
	}
	return got, nil
}

// jobField tells the texts of a question and its answer apart.
func jobField(key []byte, field string) []byte { return append([]byte(field+"\x00"), key...) }

// sealJob encrypts what a gateway says to a question, if its session is encrypted.
func (s *Store) sealJob(ctx context.Context, tenant string, id uuid.UUID, field, text string) (said string, sealed bool, err error) {
	if s.cfg.Vault == nil {
		return text, false, nil
	}
	r, err := s.of(tenant).JobSession(ctx, db.JobSessionParams{TenantID: tenant, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, ErrUnknownJob
	}
	if err != nil {
		return "", false, readErr("summarization job", err)
	}
	return s.opener(tenant, r.SID).sealJob(ctx, jobField(r.Key, field), text)
}

// HostJob is a question that a gateway has leased.
type HostJob struct {
	ID             uuid.UUID
	SessionKey     string
	Model          string
	System, Prompt string
	MaxTokens      int
	Deadline       time.Time
}

// LeaseHostJob gives the oldest open question of a tenant to a gateway. models,
// if any, are those that it has. ok is false where there is none.
func (s *Store) LeaseHostJob(ctx context.Context, tenant, owner string, models []string, lease time.Duration) (job HostJob, ok bool, err error) {
	if models == nil {
		models = []string{}
	}
	for {
		r, err := s.of(tenant).LeaseJob(ctx, db.LeaseJobParams{TenantID: tenant, Owner: &owner, Models: models, LeaseSeconds: lease.Seconds()})
		if errors.Is(err, pgx.ErrNoRows) {
			return HostJob{}, false, nil
		}
		if err != nil {
			return HostJob{}, false, fmt.Errorf("summarization job: %w", errUnavailable(err))
		}
		job, err := s.openJob(ctx, tenant, r)
		if !unreadable(err) {
			return job, err == nil, err
		}
		// It must not stand before the questions of other sessions.
		s.log.Warn("a question is unreadable", "sid", r.SID, "error", err)
		why := "the question is unreadable"
		if _, err := s.of(tenant).FailJob(ctx, db.FailJobParams{TenantID: tenant, ID: r.ID, Error: &why, Sealed: true}); err != nil {
			return HostJob{}, false, fmt.Errorf("summarization job: %w", errUnavailable(err))
		}
	}
}

func (s *Store) openJob(ctx context.Context, tenant string, r db.LeaseJobRow) (job HostJob, err error) {
	open := s.opener(tenant, r.SID)
	if r.System, err = open.job(ctx, jobField(r.Key, "system"), r.System); err != nil {
		return HostJob{}, err
	}
	if r.Prompt, err = open.job(ctx, jobField(r.Key, "prompt"), r.Prompt); err != nil {
		return HostJob{}, err
	}
	job = HostJob{ID: r.ID, SessionKey: r.SessionKey, Model: r.Model, System: r.System, Prompt: r.Prompt, MaxTokens: int(r.MaxTokens)}
	if r.LeaseUntil != nil {
		job.Deadline = *r.LeaseUntil
	}
	return job, nil
}

// HostAnswer is what a gateway's model said.
type HostAnswer struct {
	Text, Model, Finish       string
	InputTokens, OutputTokens int64
}

// AnswerHostJob keeps an answer. accepted is false where there was one before.
func (s *Store) AnswerHostJob(ctx context.Context, tenant string, id uuid.UUID, a HostAnswer) (accepted bool, err error) {
	var sealed bool
	if a.Text, sealed, err = s.sealJob(ctx, tenant, id, "answer", a.Text); err != nil {
		return false, err
	}
	n, err := s.of(tenant).AnswerJob(ctx, db.AnswerJobParams{
		TenantID: tenant, ID: id, Answer: &a.Text, Finish: &a.Finish, AnswerModel: &a.Model,
		InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, Sealed: sealed,
	})
	return s.settled(ctx, tenant, id, n, err)
}

// FailHostJob says that a gateway's model gave no answer.
func (s *Store) FailHostJob(ctx context.Context, tenant string, id uuid.UUID, reason string) (accepted bool, err error) {
	reason, sealed, err := s.sealJob(ctx, tenant, id, "error", reason)
	if err != nil {
		return false, err
	}
	n, err := s.of(tenant).FailJob(ctx, db.FailJobParams{TenantID: tenant, ID: id, Error: &reason, Sealed: sealed})
	return s.settled(ctx, tenant, id, n, err)
}

func (s *Store) settled(ctx context.Context, tenant string, id uuid.UUID, n int64, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("summarization job: %w", errUnavailable(err))
	}
	if n > 0 {
		return true, nil
	}
	job, err := s.of(tenant).JobState(ctx, db.JobStateParams{TenantID: tenant, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrUnknownJob
	}
	if err != nil {
		return false, readErr("summarization job", err)
	}
	if job.Open && job.Sealed && s.cfg.Vault == nil {
		return false, vault.ErrClosed // it could not encrypt the answer
	}
	return false, nil
}

// HostJobState is how a question stands.
type HostJobState struct {
	Answered, Failed bool
	// Unclaimed: no gateway took it in time.
	Unclaimed bool
	Answer    HostAnswer
	Err       string
}

// HostJob reads how a question stands; ErrUnknownJob once it is gone.
func (s *Store) HostJob(ctx context.Context, tenant string, id uuid.UUID) (HostJobState, error) {
	r, err := s.of(tenant).ReadJob(ctx, db.ReadJobParams{TenantID: tenant, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return HostJobState{}, ErrUnknownJob
	}
	if err != nil {
		return HostJobState{}, readErr("summarization job", err)
	}
	open := s.opener(tenant, r.SID)
	said, err := open.job(ctx, jobField(r.Key, "answer"), deref(r.Answer))
	if err != nil {
		return HostJobState{}, err
	}
	failure, err := open.job(ctx, jobField(r.Key, "error"), deref(r.Error))
	if err != nil {
		return HostJobState{}, err
	}
	return HostJobState{
		Answered: r.State == "answered", Failed: r.State == "failed", Unclaimed: r.Unclaimed, Err: failure,
		Answer: HostAnswer{
			Text: said, Model: deref(r.AnswerModel), Finish: deref(r.Finish),
			InputTokens: r.InputTokens, OutputTokens: r.OutputTokens,
		},
	}, nil
}

// DropHostJob forgets a question, and those of all tenants that nobody came
// back for.
func (s *Store) DropHostJob(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.of(tenant).DropJob(ctx, db.DropJobParams{TenantID: tenant, ID: id})
	if err == nil {
		err = s.everyone.DropOldJobs(ctx)
	}
	if err != nil {
		return fmt.Errorf("summarization job: %w", errUnavailable(err))
	}
	return nil
}
