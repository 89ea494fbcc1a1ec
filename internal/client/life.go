package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Receipt says what an erasure took away.
type Receipt struct {
	Erased   int              `json:"erased"`
	ErasedAt time.Time        `json:"erasedAt"`
	Counts   map[string]int64 `json:"counts"`
	// Complete is false when hidden rows are left for a worker to delete.
	Complete bool `json:"complete"`
}

// Erase erases a session for good.
func (c *Client) Erase(ctx context.Context, key string) (Receipt, json.RawMessage, error) {
	return into[Receipt](c.call(ctx, http.MethodDelete, sessionPath(key, ""), nil, nil))
}

// EraseMany erases all sessions whose keys begin with a prefix.
func (c *Client) EraseMany(ctx context.Context, prefix string) (Receipt, json.RawMessage, error) {
	return into[Receipt](c.call(ctx, http.MethodDelete, "/v1/sessions", url.Values{"keyPrefix": {prefix}}, nil))
}

// Lease is a session's lease.
type Lease struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Renewed   bool      `json:"renewed"`
}

// TakeLease takes or renews a session's lease.
func (c *Client) TakeLease(ctx context.Context, key, owner string, ttl time.Duration) (Lease, error) {
	l, _, err := post[Lease](ctx, c, sessionPath(key, "lease"), map[string]any{"owner": owner, "ttlMs": ttl.Milliseconds()})
	return l, err
}

// EndLease gives a lease back.
func (c *Client) EndLease(ctx context.Context, key, token string) error {
	_, err := c.call(ctx, http.MethodDelete, sessionPath(key, "lease"), url.Values{"token": {token}}, nil)
	return err
}
