package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// Health asks whether the node lives, and Ready whether it serves. What the
// node said comes along even when the answer is no.
func (c *Client) Health(ctx context.Context) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, "/healthz", nil, nil)
}

// Ready asks whether the node can serve turns. An answer of 503 is no error.
func (c *Client) Ready(ctx context.Context) (ready bool, detail string, err error) {
	raw, err := c.call(ctx, http.MethodGet, "/readyz", nil, nil)
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusServiceUnavailable {
		return false, p.Detail, nil
	}
	return err == nil, string(raw), err
}

// OpenAPI is the node's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, "/openapi.json", nil, nil)
}
