package client

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// AuditEntry is one call as the audit log has it.
type AuditEntry struct {
	At         time.Time `json:"at"`
	KeyID      string    `json:"keyId"`
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	SessionKey string    `json:"sessionKey"`
	Status     int       `json:"status"`

	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the row's text.
func (e *AuditEntry) UnmarshalJSON(b []byte) error {
	type plain AuditEntry
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Audit is a page of the audit log, newest first; next is empty on the last
// one. Filters are parameters of the route.
func (c *Client) Audit(ctx context.Context, filters url.Values, after string, limit int) (rows []AuditEntry, next string, err error) {
	q := page(limit)
	maps.Copy(q, filters)
	if after != "" {
		q.Set("after", after)
	}
	v, _, err := into[struct {
		Audit []AuditEntry    `json:"audit"`
		Next  json.RawMessage `json:"next"`
	}](c.call(ctx, http.MethodGet, "/v1/audit", q, nil))
	return v.Audit, cursor(v.Next), err
}
