package remote

import (
	"context"
	"net/http"

	"github.com/engined/engined/contextengine"
)

// The client is an engine with every optional method.
var _ interface {
	contextengine.Engine
	contextengine.Bootstrapper
	contextengine.BatchIngester
	contextengine.TurnCommitter
	contextengine.AfterTurner
	contextengine.Maintainer
	contextengine.SubagentHost
	contextengine.Disposer
} = (*Client)(nil)

// post prepares a call on a session.
func (c *Client) post(op string, s contextengine.Session, v any, members ...member) (*call, error) {
	if err := checkSession(s); err != nil {
		return nil, err
	}
	body, err := object(v, members...)
	if err != nil {
		return nil, err
	}
	return &call{
		op: op, method: http.MethodPost, path: sessionPath(s.SessionKey, op), tenant: s.Tenant, body: body,
		limit: min(c.cfg.MaxAnswerBytes, maxSmallAnswer), timeout: c.cfg.Timeout,
	}, nil
}

func (k *call) expect(e contextengine.Expectations, key string) {
	k.expected = expected{head: e.ExpectedHead, epoch: e.ExpectedEpoch, key: key}
}

// Ingest stores one message. It is repeated after a lost connection only if it
// has an idempotency key.
func (c *Client) Ingest(ctx context.Context, p contextengine.IngestParams) (contextengine.IngestResult, error) {
	if err := checkText("idempotencyKey", p.IdempotencyKey); err != nil {
		return contextengine.IngestResult{}, err
	}
	if err := checkMessage("message", p.Message); err != nil {
		return contextengine.IngestResult{}, err
	}
	k, err := c.post(opIngest, p.Session, struct {
		contextengine.IngestParams
		Message *absent `json:"message,omitempty"`
	}{IngestParams: p}, one("message", p.Message))
	if err != nil {
		return contextengine.IngestResult{}, err
	}
	k.expect(p.Expectations, p.IdempotencyKey)
	k.twice = p.IdempotencyKey != ""
	var a ingestAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.IngestResult{}, err
	}
	return a.result()
}

// IngestBatch stores messages, all or none. It is repeated after a lost
// connection only if every message has an idempotency key.
func (c *Client) IngestBatch(ctx context.Context, p contextengine.IngestBatchParams) (contextengine.IngestBatchResult, error) {
	k, err := c.post(opIngestBatch, p.Session, struct {
		contextengine.IngestBatchParams
		Messages *absent `json:"messages,omitempty"`
	}{IngestBatchParams: p}, many(p.Messages))
	if err != nil {
		return contextengine.IngestBatchResult{}, err
	}
	k.expect(p.Expectations, "")
	k.twice = len(p.IdempotencyKeys) == len(p.Messages)
	for _, key := range p.IdempotencyKeys {
		if err := checkText("idempotencyKeys", key); err != nil {
			return contextengine.IngestBatchResult{}, err
		}
		k.twice = k.twice && key != ""
	}
	var a batchAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.IngestBatchResult{}, err
	}
	return a.result(len(p.Messages))
}

// Bootstrap hands over the host's history; what is known is skipped, so a
// repetition is harmless.
func (c *Client) Bootstrap(ctx context.Context, p contextengine.BootstrapParams) (contextengine.BootstrapResult, error) {
	k, err := c.post(opBootstrap, p.Session, struct {
		contextengine.BootstrapParams
		Messages *absent `json:"messages,omitempty"`
	}{BootstrapParams: p}, given(p.Messages))
	if err != nil {
		return contextengine.BootstrapResult{}, err
	}
	k.expect(p.Expectations, "")
	k.twice = true
	var a bootstrapAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.BootstrapResult{}, err
	}
	return a.result()
}

// CommitTurn stores a turn once per advancement key.
func (c *Client) CommitTurn(ctx context.Context, p contextengine.CommitTurnParams) (contextengine.CommitTurnResult, error) {
	if err := checkText("advancementKey", p.AdvancementKey); err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	k, err := c.post(opCommitTurn, p.Session, struct {
		contextengine.CommitTurnParams
		Messages  *absent `json:"messages,omitempty"`
		Admission *absent `json:"admission,omitempty"`
		Terminal  *absent `json:"terminal,omitempty"`
	}{CommitTurnParams: p}, many(p.Messages), one("admission", p.Admission), one("terminal", p.Terminal))
	if err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	k.expect(p.Expectations, p.AdvancementKey)
	k.twice = p.AdvancementKey != ""
	var a commitAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.CommitTurnResult{}, err
	}
	return a.result()
}

// AfterTurn tells what a turn added. It is never repeated by the client.
func (c *Client) AfterTurn(ctx context.Context, p contextengine.AfterTurnParams) (contextengine.AfterTurnResult, error) {
	k, err := c.post(opAfterTurn, p.Session, struct {
		contextengine.AfterTurnParams
		Messages *absent `json:"messages,omitempty"`
	}{AfterTurnParams: p}, many(p.Messages))
	if err != nil {
		return contextengine.AfterTurnResult{}, err
	}
	k.expect(p.Expectations, "")
	var a afterAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.AfterTurnResult{}, err
	}
	return a.result()
}

// Assemble asks for a window.
func (c *Client) Assemble(ctx context.Context, p contextengine.AssembleParams) (contextengine.AssembleResult, error) {
	k, err := c.post(opAssemble, p.Session, struct {
		contextengine.AssembleParams
		Messages *absent `json:"messages,omitempty"`
	}{AssembleParams: p}, given(p.Messages))
	if err != nil {
		return contextengine.AssembleResult{}, err
	}
	k.twice, k.limit = true, c.cfg.MaxAnswerBytes
	a := assembleAnswer{Messages: messageList{most: c.cfg.MaxMessages}}
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.AssembleResult{}, err
	}
	return a.result()
}

// Compact asks for a smaller window. It is made again only if it cannot have been
// seen.
func (c *Client) Compact(ctx context.Context, p contextengine.CompactParams) (contextengine.CompactResult, error) {
	k, err := c.post(opCompact, p.Session, p)
	if err != nil {
		return contextengine.CompactResult{}, err
	}
	k.expect(p.Expectations, "")
	k.timeout = c.cfg.CompactTimeout
	var a compactAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.CompactResult{}, err
	}
	return a.result()
}

// Maintain asks for housekeeping.
func (c *Client) Maintain(ctx context.Context, p contextengine.MaintainParams) (contextengine.MaintainResult, error) {
	k, err := c.post(opMaintain, p.Session, p)
	if err != nil {
		return contextengine.MaintainResult{}, err
	}
	k.twice = true
	var a maintainAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return contextengine.MaintainResult{}, err
	}
	return a.result()
}
