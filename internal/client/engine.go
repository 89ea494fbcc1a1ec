package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// EngineList is what a node says of its engines.
type EngineList struct {
	Serving     string       `json:"serving"`
	Engines     []Engine     `json:"engines"`
	Quarantines []Quarantine `json:"quarantines"`
}

// Engine is a registered engine. Slot is set for the one that was chosen.
type Engine struct {
	ID             string `json:"id"`
	Owner          string `json:"owner"`
	Name           string `json:"name"`
	Version        string `json:"version"`
	OwnsCompaction bool   `json:"ownsCompaction"`
	Slot           string `json:"slot"`
	Quarantine     string `json:"quarantine"`
}

// Quarantine is an engine that the node has set aside.
type Quarantine struct {
	EngineID  string    `json:"engineId"`
	Operation string    `json:"operation"`
	Reason    string    `json:"reason"`
	FailedAt  time.Time `json:"failedAt"`
}

// Engines lists the engines of the node.
func (c *Client) Engines(ctx context.Context) (EngineList, []byte, error) {
	list, raw, err := into[EngineList](c.call(ctx, http.MethodGet, "/v1/engines", nil, nil))
	return list, raw, err
}

// ClearQuarantine gives an engine of the node another chance. It tells whether
// the engine was set aside.
func (c *Client) ClearQuarantine(ctx context.Context, id string) (bool, []byte, error) {
	res, raw, err := into[struct {
		Cleared bool `json:"cleared"`
	}](c.call(ctx, http.MethodDelete, "/v1/engines/"+url.PathEscape(id)+"/quarantine", nil, nil))
	return res.Cleared, raw, err
}
