package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/access"
	"github.com/engined/engined/internal/store/db"
)

var _ access.Source = (*Store)(nil)

// CreateKey keeps a new API key.
func (s *Store) CreateKey(ctx context.Context, k access.Key) error {
	err := s.of(k.Tenant).CreateKey(ctx, db.CreateKeyParams{
		ID: k.ID, TenantID: k.Tenant, Name: k.Name, Scopes: int16(k.Scopes), Hash: k.Hash[:], CreatedAt: k.CreatedAt, ExpiresAt: orNil(k.ExpiresAt),
	})
	if err != nil {
		return fmt.Errorf("create key: %w", errUnavailable(err))
	}
	return nil
}

// Key reads an API key by its id, whoever's it is.
func (s *Store) Key(ctx context.Context, id string) (access.Key, error) {
	r, err := s.everyone.KeyByID(ctx, db.KeyByIDParams{ID: id})
	return keyOf(&r, err)
}

// Keys lists API keys, of all tenants where none is named.
func (s *Store) Keys(ctx context.Context, tenant string) ([]access.Key, error) {
	rows, err := s.everyone.ListKeys(ctx, db.ListKeysParams{TenantID: tenant})
	if err != nil {
		return nil, fmt.Errorf("keys: %w", errUnavailable(err))
	}
	out := make([]access.Key, len(rows))
	for i := range rows {
		if out[i], err = keyOf(&rows[i], nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// HasKeys tells whether any API key counts.
func (s *Store) HasKeys(ctx context.Context) (bool, error) {
	n, err := s.everyone.CountKeys(ctx, db.CountKeysParams{MaxRows: 1})
	if err != nil {
		return false, fmt.Errorf("keys: %w", errUnavailable(err))
	}
	return n > 0, nil
}

// RevokeKey ends an API key and answers with it; a second time changes nothing.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (access.Key, error) {
	r, err := s.everyone.RevokeKey(ctx, db.RevokeKeyParams{ID: id, At: at})
	return keyOf(&r, err)
}

// KeysUsed notes when keys were last used; a later time is never replaced.
func (s *Store) KeysUsed(ctx context.Context, used map[string]time.Time) error {
	var p db.KeysUsedParams
	for id, at := range used {
		p.Ids, p.Ats = append(p.Ids, id), append(p.Ats, at)
	}
	if err := s.everyone.KeysUsed(ctx, p); err != nil {
		return fmt.Errorf("keys used: %w", errUnavailable(err))
	}
	return nil
}

func keyOf(r *db.ApiKey, err error) (access.Key, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Key{}, access.ErrUnknownKey
	}
	if err != nil {
		return access.Key{}, fmt.Errorf("key: %w", errUnavailable(err))
	}
	k := access.Key{
		ID: r.ID, Tenant: r.TenantID, Name: r.Name, Scopes: access.Scopes(r.Scopes), CreatedAt: r.CreatedAt,
		ExpiresAt: orZero(r.ExpiresAt), RevokedAt: orZero(r.RevokedAt), LastUsedAt: orZero(r.LastUsedAt),
	}
	if copy(k.Hash[:], r.Hash) != len(k.Hash) {
		return access.Key{}, fmt.Errorf("key %s: its hash has %d bytes", r.ID, len(r.Hash))
	}
	return k, nil
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
