package api

import (
	"context"

	"github.com/engined/engined/contextengine"
)

// Branches are the calls that begin sessions under others.
type Branches interface {
	contextengine.SubagentHost
	// Fork begins newKey with the session's window at atSeq, its head when nil.
	Fork(ctx context.Context, s contextengine.Session, newKey string, atSeq *int64) (contextengine.StepResult, error)
	// RollbackSubagent removes a child that never wrote; false for one that is not
	// known to the session.
	RollbackSubagent(ctx context.Context, s contextengine.Session, childKey string) (bool, error)
}

// ForkRequest begins another session.
type ForkRequest struct {
	contextengine.Session
	contextengine.Expectations
	NewSessionKey string `json:"newSessionKey" nullable:"false"`
	AtSeq         *int64 `json:"atSeq,omitempty"`
}

// SubagentPrepared answers a preparation; an engine without sub-agents has
// nothing to prepare and gives no id.
type SubagentPrepared struct {
	PreparationID string `json:"preparationId,omitempty"`
}

// RollbackRequest undoes a preparation.
type RollbackRequest struct{ contextengine.Session }

// SubagentRolledBack is false for a child that the session does not know.
type SubagentRolledBack struct {
	RolledBack bool `json:"rolledBack"`
}

// EndedRequest tells why a child ended.
type EndedRequest struct {
	contextengine.Session
	Reason contextengine.SubagentEndReason `json:"reason" nullable:"false" enum:"deleted,completed,swept,released"`
}

const childParam = "/subagents/{child}"

func branchOperations() []*operation {
	fork := post("/fork", "fork", tagSessions, "Begin a session with this one's window", serveFork)
	fork.description = "The new session shows this one's window at `atSeq` and copies nothing. Neither shows what the other stores later. " +
		"`head` and `epoch` are the new session's."
	fork.request, fork.answer = of[ForkRequest](), of[contextengine.StepResult]()
	fork.refusals = []kind{kindUnknown, kindExists, kindEpoch, kindErased, kindLease, kindStaleHead}

	prepare := post("/subagents", "prepareSubagent", tagSessions, "Ready a sub-agent's session", servePrepare)
	prepare.description = "`isolated` begins empty, `fork` with this session's window without its unanswered call. " +
		"Asking again before the child has begun answers the same. A child that never writes is removed after `ttlMs`."
	prepare.request, prepare.answer = of[contextengine.PrepareSubagentSpawnParams](), of[SubagentPrepared]()
	prepare.refusals = []kind{kindUnknown, kindExists, kindErased, kindLease, kindEngineFailed}

	rollback := post(childParam+"/rollback", "rollbackSubagent", tagSessions, "Undo a sub-agent's preparation", serveRollback)
	rollback.description = "The key is the parent's or the child's own. Nothing stays of the child, and its key is free. One that wrote is kept: 409."
	rollback.request, rollback.answer, rollback.bodyOptional = of[RollbackRequest](), of[SubagentRolledBack](), true
	rollback.refusals = []kind{kindBegan, kindLease}

	ended := post(childParam+"/ended", "endSubagent", tagSessions, "Tell that a sub-agent ended", serveEnded)
	ended.description = "The key is the parent's or the child's own. Nothing is removed: `deleted` marks."
	ended.request, ended.answer = of[EndedRequest](), of[contextengine.SubagentEndedResult]()
	return []*operation{fork, prepare, rollback, ended}
}

func serveFork(c *call) error {
	var p ForkRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.expectations(p.Expectations)
	k.required("newSessionKey", p.NewSessionKey)
	k.atLeast("atSeq", p.AtSeq, 1)
	if k.err != nil {
		return k.err
	}
	if err := c.expect(p.Expectations); err != nil {
		return err
	}
	if err := c.expectLease(p.Session); err != nil {
		return err
	}
	res, err := c.api.cfg.Branches.Fork(c.ctx, c.named(p.Session), p.NewSessionKey, p.AtSeq)
	if err != nil {
		return err
	}
	return c.answer(&res)
}

func servePrepare(c *call) error {
	var p contextengine.PrepareSubagentSpawnParams
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	k.required("childSessionKey", p.ChildSessionKey)
	k.key("childSessionId", p.ChildSessionID)
	k.atLeast("ttlMs", &p.TTLMs, 0)
	switch p.ContextMode {
	case "", contextengine.ContextIsolated, contextengine.ContextFork:
	default:
		k.fail("contextMode", `must be "isolated" or "fork"`)
	}
	if k.err != nil {
		return k.err
	}
	if err := c.expectLease(p.Session); err != nil {
		return err
	}
	p.Session = c.named(p.Session)
	prep, err := c.api.cfg.Branches.PrepareSubagentSpawn(c.ctx, p)
	if err != nil {
		return err
	}
	var res SubagentPrepared
	if prep != nil {
		res.PreparationID = prep.PreparationID
	}
	return c.answer(&res)
}

func serveRollback(c *call) error {
	var p RollbackRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	child := c.child(&k)
	if k.err != nil {
		return k.err
	}
	if err := c.expectLease(p.Session); err != nil {
		return err
	}
	ok, err := c.api.cfg.Branches.RollbackSubagent(c.ctx, c.named(p.Session), child)
	if err != nil {
		return err
	}
	return c.answer(&SubagentRolledBack{RolledBack: ok})
}

func serveEnded(c *call) error {
	var p EndedRequest
	if err := c.decode(c.api.cfg.Limits.MessageBytes, &p); err != nil {
		return err
	}
	k := c.check()
	k.session(p.Session)
	child := c.child(&k)
	if !p.Reason.Known() {
		k.fail("reason", "must be deleted, completed, swept or released")
	}
	if k.err != nil {
		return k.err
	}
	if err := c.expectLease(p.Session); err != nil {
		return err
	}
	res, err := c.api.cfg.Branches.OnSubagentEnded(c.ctx, contextengine.SubagentEndedParams{
		Session: c.named(p.Session), ChildSessionKey: child, Reason: p.Reason,
	})
	if err != nil {
		return err
	}
	return c.answer(&res)
}

// expectLease holds a token against the session's lease.
func (c *call) expectLease(s contextengine.Session) error {
	if s.LeaseToken == "" {
		return nil
	}
	return c.api.cfg.Lives.HoldsLease(c.ctx, c.tenant, c.session, s.LeaseToken)
}

// child is the session key that the path names second.
func (c *call) child(k *check) string {
	child := pathChild(c.r)
	k.required("childSessionKey", child)
	return child
}
