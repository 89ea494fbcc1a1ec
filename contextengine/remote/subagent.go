package remote

import (
	"context"
	"errors"

	"github.com/engined/engined/contextengine"
)

// spawnAnswer answers a preparation; no id means that there was nothing to do.
type spawnAnswer struct {
	PreparationID string `json:"preparationId,omitempty"`
}

// rollbackAnswer is false for a child that nobody prepared.
type rollbackAnswer struct {
	RolledBack *bool `json:"rolledBack"`
}

type endedAnswer struct {
	Ended *bool `json:"ended"`
}

// PrepareSubagentSpawn readies a child session. An engine without sub-agents
// has nothing to prepare; that keeps no child from starting.
func (c *Client) PrepareSubagentSpawn(
	ctx context.Context, p contextengine.PrepareSubagentSpawnParams,
) (*contextengine.SubagentPreparation, error) {
	if err := checkChild(p.ChildSessionKey); err != nil {
		return nil, err
	}
	k, err := c.post(opSpawn, p.Session, p)
	if err != nil {
		return nil, err
	}
	var a spawnAnswer
	switch err := c.do(ctx, k, &a); {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, err
	case a.PreparationID == "":
		return nil, nil
	}
	return &contextengine.SubagentPreparation{
		PreparationID: a.PreparationID,
		Rollback:      func(ctx context.Context) error { return c.rollback(ctx, p) },
	}, nil
}

func (c *Client) rollback(ctx context.Context, p contextengine.PrepareSubagentSpawnParams) error {
	k, err := c.post(opRollback, p.Session, struct{}{})
	if err != nil {
		return err
	}
	k.path, k.twice = childPath(p.SessionKey, p.ChildSessionKey, opRollback), true
	var a rollbackAnswer
	if err := c.do(ctx, k, &a); err != nil {
		return err
	}
	if a.RolledBack == nil {
		return missing(opRollback, "rolledBack")
	}
	return nil
}

// OnSubagentEnded tells of a child's end. An engine without sub-agents knows no
// child.
func (c *Client) OnSubagentEnded(
	ctx context.Context, p contextengine.SubagentEndedParams,
) (contextengine.SubagentEndedResult, error) {
	none := contextengine.SubagentEndedResult{}
	if err := checkChild(p.ChildSessionKey); err != nil {
		return none, err
	}
	if p.SessionKey == "" {
		p.SessionKey = p.ChildSessionKey // the path needs one, and the child will do
	}
	k, err := c.post(opEnded, p.Session, p)
	if err != nil {
		return none, err
	}
	k.path, k.twice = childPath(p.SessionKey, p.ChildSessionKey, opEnded), true
	var a endedAnswer
	switch err := c.do(ctx, k, &a); {
	case errors.Is(err, errors.ErrUnsupported):
		return none, nil
	case err != nil:
		return none, err
	case a.Ended == nil:
		return none, missing(opEnded, "ended")
	}
	return contextengine.SubagentEndedResult{Ended: *a.Ended}, nil
}

func checkChild(key string) error {
	err := checkSession(contextengine.Session{SessionKey: key})
	if bad, ok := errors.AsType[*contextengine.InvalidError](err); ok {
		bad.Field = "childSessionKey"
	}
	return err
}
