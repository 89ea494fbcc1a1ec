package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/engined/engined/internal/audit"
	"github.com/engined/engined/internal/store/db"
)

var _ audit.Sink = (*Store)(nil)

// RecordAudit writes a batch of entries, of any tenants.
func (s *Store) RecordAudit(ctx context.Context, entries []audit.Entry) error {
	var p db.RecordAuditParams
	for i := range entries {
		e := &entries[i]
		p.TenantIds = append(p.TenantIds, e.Tenant)
		p.Ats = append(p.Ats, e.At)
		p.KeyIds = append(p.KeyIds, e.Key)
		p.RequestIds = append(p.RequestIds, e.Request)
		p.Methods = append(p.Methods, e.Method)
		p.Routes = append(p.Routes, e.Route)
		p.SessionKeys = append(p.SessionKeys, storable(e.Session))
		p.Statuses = append(p.Statuses, int16(e.Status))
	}
	if err := s.everyone.RecordAudit(ctx, p); err != nil {
		return fmt.Errorf("audit: %w", errUnavailable(err))
	}
	return nil
}

// storable is a text as Postgres takes it: one refused row would hold up all
// that wait behind it.
func storable(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// ForgetAudit deletes up to limit entries from before a time.
func (s *Store) ForgetAudit(ctx context.Context, before time.Time, limit int) (int64, error) {
	n, err := s.everyone.ForgetAudit(ctx, db.ForgetAuditParams{Before: before, MaxRows: int32(limit)})
	if err != nil {
		return 0, fmt.Errorf("audit: %w", errUnavailable(err))
	}
	return n, nil
}

// AuditQuery asks for entries of a tenant. Empty fields ask for all.
type AuditQuery struct {
	// Before is the id of the last entry seen; 0 begins at the newest.
	Before       int64
	Session, Key string
	Since, Until time.Time
}

// AuditEntry is an entry and its id.
type AuditEntry struct {
	ID int64
	audit.Entry
}

// Audit reads a tenant's entries, newest first.
func (s *Store) Audit(ctx context.Context, tenant string, q AuditQuery, limit int) ([]AuditEntry, error) {
	p := db.ListAuditParams{
		TenantID: tenant, Before: q.Before, SessionKey: q.Session, KeyID: q.Key, Since: q.Since, Until: q.Until, MaxRows: int32(limit),
	}
	if p.Before == 0 {
		p.Before = 1<<63 - 1
	}
	if p.Until.IsZero() {
		p.Until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	rows, err := s.of(tenant).ListAudit(ctx, p)
	if err != nil {
		return nil, readErr("audit", err)
	}
	out := make([]AuditEntry, len(rows))
	for i, r := range rows {
		out[i] = AuditEntry{ID: r.ID, Entry: audit.Entry{
			Tenant: tenant, At: r.At, Key: r.KeyID, Request: r.RequestID, Method: r.Method, Route: r.Route, Session: r.SessionKey, Status: int(r.Status),
		}}
	}
	return out, nil
}
