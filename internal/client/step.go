package client

import (
	"context"
	"encoding/json"

	"github.com/engined/engined/contextengine"
)

// Stepped answers calls that move a session to another epoch.
type Stepped struct {
	Head  int64 `json:"head"`
	Epoch int64 `json:"epoch"`
}

// UndoCompaction goes back to the window before an epoch's compaction; 0 is
// the newest one.
func (c *Client) UndoCompaction(ctx context.Context, key string, epoch int64) (Stepped, json.RawMessage, error) {
	return post[Stepped](ctx, c, sessionPath(key, "undo-compaction"), struct {
		Epoch int64 `json:"epoch,omitempty"`
	}{epoch})
}

// Reset hides what a session shows, but for what began at a seq; 0 hides all.
func (c *Client) Reset(ctx context.Context, key string, keepFrom int64, reason string) (Stepped, json.RawMessage, error) {
	return post[Stepped](ctx, c, sessionPath(key, "reset"), struct {
		KeepFromSeq int64  `json:"keepFromSeq,omitempty"`
		Reason      string `json:"reason,omitempty"`
	}{keepFrom, reason})
}

// Rewind goes back to the newest message at or before a seq.
func (c *Client) Rewind(ctx context.Context, key string, toSeq int64) (Stepped, json.RawMessage, error) {
	return post[Stepped](ctx, c, sessionPath(key, "rewind"), struct {
		ToSeq int64 `json:"toSeq"`
	}{toSeq})
}

// Maintain has the session's engine do its housekeeping.
func (c *Client) Maintain(ctx context.Context, key string) (contextengine.MaintainResult, json.RawMessage, error) {
	return post[contextengine.MaintainResult](ctx, c, sessionPath(key, "maintain"), struct{}{})
}
