package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// Health asks whether the node lives, and Ready whether it serves.
func (c *Client) Health(ctx context.Context) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, "/healthz", nil, nil)
}

// Check is one thing that a node needs, and how it is.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"`
	Required bool   `json:"required"`
}

// Readiness is whether a node can serve turns. Checks is empty where the node
// is not ready: then Detail says why.
type Readiness struct {
	Ready  bool
	Detail string
	Checks []Check
}

// Why is why a node is not ready, without saying again that it is not.
func (r Readiness) Why() string { return strings.TrimPrefix(r.Detail, "not ready: ") }

// Ready asks whether the node can serve turns. An answer of 503 is no error.
func (c *Client) Ready(ctx context.Context) (Readiness, error) {
	v, raw, err := into[struct {
		Checks []Check `json:"checks"`
	}](c.call(ctx, http.MethodGet, "/readyz", nil, nil))
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusServiceUnavailable {
		return Readiness{Detail: p.Detail}, nil
	}
	return Readiness{Ready: err == nil, Detail: string(raw), Checks: v.Checks}, err
}

// OpenAPI is the node's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, "/openapi.json", nil, nil)
}
