package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/engined/engined/contextengine"
)

// Fork begins a session with another one's window at a seq; 0 is its head.
func (c *Client) Fork(ctx context.Context, key, newKey string, atSeq int64) (Stepped, json.RawMessage, error) {
	return post[Stepped](ctx, c, sessionPath(key, "fork"), struct {
		NewSessionKey string `json:"newSessionKey"`
		AtSeq         int64  `json:"atSeq,omitempty"`
	}{newKey, atSeq})
}

// PrepareSubagent readies a child session and answers with the preparation's id.
func (c *Client) PrepareSubagent(ctx context.Context, key string, p contextengine.PrepareSubagentSpawnParams) (string, json.RawMessage, error) {
	res, raw, err := post[contextengine.SubagentPreparation](ctx, c, sessionPath(key, "subagents"), p)
	return res.PreparationID, raw, err
}

// RollbackSubagent undoes a preparation. It is false for a child that the
// session does not know.
func (c *Client) RollbackSubagent(ctx context.Context, key, child string) (bool, error) {
	res, _, err := post[struct {
		RolledBack bool `json:"rolledBack"`
	}](ctx, c, sessionPath(key, "subagents/"+url.PathEscape(child)+"/rollback"), struct{}{})
	return res.RolledBack, err
}

// EndSubagent tells why a child ended. It is false for a child that the session
// does not know.
func (c *Client) EndSubagent(ctx context.Context, key, child string, reason contextengine.SubagentEndReason) (bool, error) {
	res, _, err := post[contextengine.SubagentEndedResult](ctx, c, sessionPath(key, "subagents/"+url.PathEscape(child)+"/ended"), struct {
		Reason contextengine.SubagentEndReason `json:"reason"`
	}{reason})
	return res.Ended, err
}
