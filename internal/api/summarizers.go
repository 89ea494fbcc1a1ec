package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/store"
)

// Summarization is what workers share about summaries: whom they may ask, what
// that cost, and the questions for a host's own model.
type Summarization interface {
	SummarizerStates(ctx context.Context, tenant string) ([]store.SummarizerState, error)
	SpentToday(ctx context.Context, tenant string, limitMicros int64) (store.TenantSpend, error)
	LeaseHostJob(ctx context.Context, tenant, owner string, models []string, lease time.Duration) (store.HostJob, bool, error)
	AnswerHostJob(ctx context.Context, tenant string, id uuid.UUID, a store.HostAnswer) (bool, error)
	FailHostJob(ctx context.Context, tenant string, id uuid.UUID, reason string) (bool, error)
}

var _ Summarization = (*store.Store)(nil)

// SummarizerRow is a summarizer as a tenant sees it. Those that are configured
// come first, in the order in which they are asked; others are told of as long as
// the day's spend holds theirs.
type SummarizerRow struct {
	Name string `json:"name"`
	// Kind and Model are empty for one that is not configured any more.
	Kind  string `json:"kind,omitempty"`
	Model string `json:"model,omitempty"`
	// State is closed (it is asked), open (it is left alone until OpenUntil) or
	// half-open (one worker finds out whether it answers again).
	State     string     `json:"state" enum:"closed,open,half-open"`
	OpenUntil *time.Time `json:"openUntil,omitempty"`
	// Failures counts those of the provider in a row.
	Failures  int        `json:"failures"`
	LastError string     `json:"lastError,omitempty"`
	FailedAt  *time.Time `json:"failedAt,omitempty"`
	// Today is since midnight UTC. DailyLimitMicros is in millionths of a US
	// dollar, 0 for none.
	Today            SummarizerUse `json:"today"`
	DailyLimitMicros int64         `json:"dailyLimitMicros,omitempty"`
}

// SummarizerUse is what calls took. Costs are in millionths of a US dollar, by
// the prices that are set.
type SummarizerUse struct {
	Calls        int64 `json:"calls"`
	Failed       int64 `json:"failed"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	CostMicros   int64 `json:"costMicros"`
	TookMillis   int64 `json:"tookMillis"`
}

// SummarizerList is whom a tenant's compactions ask.
type SummarizerList struct {
	Summarizers []SummarizerRow `json:"summarizers"`
	// Spend is absent where nothing is shared.
	Spend *TenantSpend `json:"spend,omitempty"`
}

// TenantSpend is what a tenant's summaries cost since midnight UTC, of all
// summarizers, in millionths of a US dollar.
type TenantSpend struct {
	CostMicros int64 `json:"costMicros"`
	// LimitMicros is absent where there is none. Once it is reached, summarizers with
	// a price are not asked before ResetsAt.
	LimitMicros int64     `json:"limitMicros,omitempty"`
	ResetsAt    time.Time `json:"resetsAt"`
}

// SummarizationWish asks for a question to answer.
type SummarizationWish struct {
	// Owner names the gateway.
	Owner string `json:"owner"`
	// Models are those that the gateway has; without them any will do.
	Models []string `json:"models,omitempty"`
	// WaitMs is how many milliseconds to wait for a question.
	WaitMs int64 `json:"waitMs,omitempty"`
}

// SummarizationJob is a question for the host's model.
type SummarizationJob struct {
	ID         string `json:"id"`
	SessionKey string `json:"sessionKey"`
	// Model is the one that is wished for; empty for the gateway's choice.
	Model   string               `json:"model,omitempty"`
	Request SummarizationRequest `json:"request"`
	// Deadline is when the question goes to another gateway.
	Deadline time.Time `json:"deadline"`
}

// SummarizationRequest is what to send to the model: a system prompt and one user
// message.
type SummarizationRequest struct {
	System    string `json:"system"`
	Prompt    string `json:"prompt"`
	MaxTokens int    `json:"maxTokens"`
}

// SummarizationAnswer is what the model said, unchanged.
type SummarizationAnswer struct {
	Text  string `json:"text"`
	Model string `json:"model,omitempty"`
	// FinishReason tells why the text ended; stop where it is left out.
	FinishReason string              `json:"finishReason,omitempty" enum:"stop,length,refusal"`
	Usage        *SummarizationUsage `json:"usage,omitempty"`
}

// SummarizationUsage is what the host's provider counted.
type SummarizationUsage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// SummarizationFailure says why there is no answer.
type SummarizationFailure struct {
	Reason string `json:"reason"`
}

// SummarizationSettled is false where an answer was there before.
type SummarizationSettled struct {
	Accepted bool `json:"accepted"`
}

const tagSummaries = "Summarizers"

func summarizerOperations() []*operation {
	list := get("/v1/summarizers", "listSummarizers", tagSummaries, "List whom compactions ask for summaries", serveSummarizers)
	list.description = "With the circuit breaker that all workers share, and what was spent today, by each and by the tenant."
	list.answer = of[SummarizerList]()

	lease := &operation{
		method: http.MethodPost, path: "/v1/summarization/lease", id: "leaseSummarization", tag: tagSummaries,
		summary: "Take a question for the host's own model", serve: serveLeaseSummarization,
	}
	lease.description = "A gateway answers with the model that it already pays for. 204 where there is no question; `waitMs` waits for one, up to 25 s. " +
		"A question that is not answered by its deadline goes to the next gateway that asks."
	lease.request, lease.answer = of[SummarizationWish](), of[SummarizationJob]()

	answer := &operation{
		method: http.MethodPost, path: "/v1/summarization/{id}/answer", id: "answerSummarization", tag: tagSummaries,
		summary: "Answer a question with what the model said", serve: serveAnswerSummarization,
	}
	answer.description = "The first answer counts, also one that comes after its deadline. The text is checked like any other summary before it is used."
	answer.request, answer.answer, answer.refusals = of[SummarizationAnswer](), of[SummarizationSettled](), []kind{kindNotFound}

	fail := &operation{
		method: http.MethodPost, path: "/v1/summarization/{id}/fail", id: "failSummarization", tag: tagSummaries,
		summary: "Say that the model gave no answer", serve: serveFailSummarization,
	}
	fail.request, fail.answer, fail.refusals = of[SummarizationFailure](), of[SummarizationSettled](), []kind{kindNotFound}
	return []*operation{list, lease, answer, fail}
}

func serveSummarizers(c *call) error {
	list := SummarizerList{Summarizers: []SummarizerRow{}}
	if c.api.cfg.Summarizers != nil {
		list.Summarizers = append(list.Summarizers, c.api.cfg.Summarizers(c.tenant)...)
	}
	at := make(map[string]int, len(list.Summarizers))
	for i := range list.Summarizers {
		list.Summarizers[i].State = "closed"
		at[list.Summarizers[i].Name] = i
	}
	if c.api.cfg.Summarization == nil {
		return c.answer(&list)
	}
	states, err := c.api.cfg.Summarization.SummarizerStates(c.ctx, c.tenant)
	if err != nil {
		return err
	}
	for _, s := range states {
		i, ok := at[s.Name]
		if !ok && s.Today.Calls == 0 {
			continue
		}
		if !ok {
			i = len(list.Summarizers)
			list.Summarizers = append(list.Summarizers, SummarizerRow{Name: s.Name})
		}
		list.Summarizers[i].show(s)
	}
	spent, err := c.api.cfg.Summarization.SpentToday(c.ctx, c.tenant, c.api.cfg.SpendMicros)
	if err != nil {
		return err
	}
	list.Spend = &TenantSpend{CostMicros: spent.CostMicros, LimitMicros: spent.LimitMicros, ResetsAt: spent.Resets}
	return c.answer(&list)
}

func (r *SummarizerRow) show(s store.SummarizerState) {
	r.State, r.Failures, r.LastError = s.State, s.Failures, s.Err
	if !s.OpenUntil.IsZero() {
		r.OpenUntil = new(s.OpenUntil.UTC())
	}
	if !s.FailedAt.IsZero() {
		r.FailedAt = new(s.FailedAt.UTC())
	}
	r.Today = SummarizerUse{
		Calls: s.Today.Calls, Failed: s.Today.Failed, InputTokens: s.Today.InputTokens, OutputTokens: s.Today.OutputTokens,
		CostMicros: s.Today.CostMicros, TookMillis: s.Today.Took.Milliseconds(),
	}
}

const (
	// hostLease is how long a gateway has to answer.
	hostLease = time.Minute
	// longestWait and waitStep: how long a gateway may wait for a question, and how
	// often the table is looked at meanwhile.
	longestWait = 25 * time.Second
	waitStep    = 500 * time.Millisecond
	// maxOwner bounds the name of a gateway, mostModels the list of its models.
	maxOwner   = 256
	mostModels = 100
)

func serveLeaseSummarization(c *call) error {
	var p SummarizationWish
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.required("owner", p.Owner)
	switch {
	case len(p.Owner) > maxOwner || strings.ContainsRune(p.Owner, 0):
		k.fail("owner", fmt.Sprintf("must be at most %d bytes, without NUL", maxOwner))
	case len(p.Models) > mostModels || strings.ContainsRune(strings.Join(p.Models, ""), 0):
		k.fail("models", fmt.Sprintf("must be at most %d names, without NUL", mostModels))
	case p.WaitMs < 0:
		k.fail("waitMs", "must not be negative")
	}
	if k.err != nil {
		return k.err
	}
	if c.api.cfg.Summarization == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	wait := min(time.Duration(min(p.WaitMs, longestWait.Milliseconds()))*time.Millisecond, c.api.cfg.Timeout*2/3)
	until := time.Now().Add(wait)
	for {
		job, ok, err := c.api.cfg.Summarization.LeaseHostJob(c.ctx, c.tenant, p.Owner, p.Models, hostLease)
		if err != nil {
			return err
		}
		if ok {
			return c.answer(&SummarizationJob{
				ID: job.ID.String(), SessionKey: job.SessionKey, Model: job.Model, Deadline: job.Deadline.UTC(),
				Request: SummarizationRequest{System: job.System, Prompt: job.Prompt, MaxTokens: job.MaxTokens},
			})
		}
		left := time.Until(until)
		if left <= 0 {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		select {
		case <-time.After(min(left, waitStep)):
		case <-c.api.draining:
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

func serveAnswerSummarization(c *call) error {
	var p SummarizationAnswer
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	switch p.FinishReason {
	case "", "stop", "length", "refusal":
	default:
		k.fail("finishReason", `must be "stop", "length" or "refusal"`)
	}
	if u := p.Usage; u != nil && (u.InputTokens < 0 || u.OutputTokens < 0) {
		k.fail("usage", "must not be negative")
	}
	if k.err != nil {
		return k.err
	}
	if p.FinishReason == "" {
		p.FinishReason = "stop"
	}
	a := store.HostAnswer{Text: withoutNUL(p.Text), Model: withoutNUL(p.Model), Finish: p.FinishReason}
	if p.Usage != nil {
		a.InputTokens, a.OutputTokens = p.Usage.InputTokens, p.Usage.OutputTokens
	}
	return c.settle(func(s Summarization, id uuid.UUID) (bool, error) { return s.AnswerHostJob(c.ctx, c.tenant, id, a) })
}

// maxReason bounds what is kept of a gateway's reason.
const maxReason = 1000

func serveFailSummarization(c *call) error {
	var p SummarizationFailure
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	reason := withoutNUL(p.Reason)
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return c.settle(func(s Summarization, id uuid.UUID) (bool, error) { return s.FailHostJob(c.ctx, c.tenant, id, reason) })
}

func (c *call) settle(do func(Summarization, uuid.UUID) (bool, error)) error {
	missing := kindNotFound.problem("no such question, or its answer was taken").field("id")
	id, err := uuid.Parse(c.r.PathValue("id"))
	if err != nil || c.api.cfg.Summarization == nil {
		return missing
	}
	accepted, err := do(c.api.cfg.Summarization, id)
	if errors.Is(err, store.ErrUnknownJob) {
		return missing
	}
	if err != nil {
		return err
	}
	return c.answer(&SummarizationSettled{Accepted: accepted})
}

func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }
