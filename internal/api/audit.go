package api

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/engined/engined/internal/store"
)

// AuditLog is what the audit route needs of the store.
type AuditLog interface {
	// Audit reads a tenant's entries, newest first.
	Audit(ctx context.Context, tenant string, q store.AuditQuery, limit int) ([]store.AuditEntry, error)
}

// AuditRow is one call of the tenant's.
type AuditRow struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"`
	// KeyID is the API key's; static-… for one of the settings, none without one.
	KeyID string `json:"keyId"`
	// RequestID is the answer's X-Request-Id.
	RequestID  string `json:"requestId"`
	Method     string `json:"method"`
	Route      string `json:"route"`
	SessionKey string `json:"sessionKey,omitempty"`
	Status     int    `json:"status"`
}

// AuditPage is a page of the audit log, newest first.
type AuditPage struct {
	Audit []AuditRow `json:"audit"`
	// Next is the next page's after; null on the last page.
	Next *string `json:"next"`
}

func auditOperations() []*operation {
	list := get("/v1/audit", "listAudit", tagNode, "Read who called what, newest first", serveAudit)
	list.description = "Calls with a key of the tenant, whatever their outcome. What was read or written is not in it. Entries appear within seconds."
	list.answer = of[AuditPage]()
	list.query = []queryParam{
		{name: "after", in: "query", doc: "Next of the page before."},
		limitParam(),
		{name: "sessionKey", in: "query", doc: "Of this session alone."},
		{name: "keyId", in: "query", doc: "Of this API key alone."},
		{name: "since", in: "query", doc: "Not before this time: RFC 3339, a date (UTC) or Unix milliseconds."},
		{name: "until", in: "query", doc: "Before this time, written as `since`."},
	}
	return []*operation{list}
}

func serveAudit(c *call) error {
	q, err := c.parameters()
	if err != nil {
		return err
	}
	limit, err := c.limit(q)
	if err != nil {
		return err
	}
	ask, err := auditQuery(q)
	if err != nil {
		return err
	}
	k := c.check()
	k.key("sessionKey", ask.Session)
	k.key("keyId", ask.Key)
	if k.err != nil {
		return k.err
	}
	page := AuditPage{Audit: []AuditRow{}}
	if c.api.cfg.AuditLog == nil {
		return c.answer(&page)
	}
	rows, err := c.api.cfg.AuditLog.Audit(c.ctx, c.tenant, ask, limit+1)
	if err != nil {
		return err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next := strconv.FormatInt(rows[limit-1].ID, 10)
		page.Next = &next
	}
	for i := range rows {
		r := &rows[i]
		page.Audit = append(page.Audit, AuditRow{
			ID: r.ID, At: r.At, KeyID: r.Key, RequestID: r.Request, Method: r.Method, Route: r.Route, SessionKey: r.Session, Status: r.Status,
		})
	}
	return c.answer(&page)
}

func auditQuery(q url.Values) (ask store.AuditQuery, err error) {
	ask = store.AuditQuery{Session: q.Get("sessionKey"), Key: q.Get("keyId")}
	if text := q.Get("after"); text != "" {
		if ask.Before, err = seq("after", text, 1); err != nil {
			return ask, err
		}
	}
	for _, f := range []struct {
		name string
		to   *time.Time
	}{{"since", &ask.Since}, {"until", &ask.Until}} {
		if *f.to, err = instant(f.name, q.Get(f.name)); err != nil {
			return ask, err
		}
	}
	return ask, nil
}
