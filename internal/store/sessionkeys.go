package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// SessionKeys keeps sessions' data keys in a Postgres, that of the log or
// another one. It has connections of its own: a key may be asked for while
// all those of a Store are in transactions.
type SessionKeys struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

var _ vault.KeyStore = (*SessionKeys)(nil)

// OpenSessionKeys connects. The schema must be there; see Migrate and
// MigrateSessionKeys.
func OpenSessionKeys(ctx context.Context, url string, bouncer bool) (*SessionKeys, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("session keys: database url: %w", err)
	}
	const conns = 4
	pc.MaxConns = conns
	pc.ConnConfig.RuntimeParams["application_name"] = "engined-keys"
	if bouncer {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("session keys: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, keysErr(err)
	}
	return &SessionKeys{pool: pool, q: db.New(pool)}, nil
}

// Close closes the connections.
func (k *SessionKeys) Close() { k.pool.Close() }

// keysErr: whatever the database of the keys says, the key is not to be had now.
func keysErr(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", vault.ErrUnavailable, err)
}

// Key implements vault.KeyStore.
func (k *SessionKeys) Key(ctx context.Context, tenant string, sid uuid.UUID) (vault.Wrapped, bool, error) {
	r, err := k.q.SessionKey(ctx, db.SessionKeyParams{TenantID: tenant, SID: sid})
	if errors.Is(err, pgx.ErrNoRows) {
		return vault.Wrapped{}, false, nil
	}
	return vault.Wrapped{Master: r.Master, Key: r.Wrapped}, err == nil, keysErr(err)
}

// PutKey implements vault.KeyStore.
func (k *SessionKeys) PutKey(ctx context.Context, tenant string, sid uuid.UUID, w vault.Wrapped) (vault.Wrapped, error) {
	r, err := k.q.PutSessionKey(ctx, db.PutSessionKeyParams{TenantID: tenant, SID: sid, Master: w.Master, Wrapped: w.Key})
	return vault.Wrapped{Master: r.Master, Key: r.Wrapped}, keysErr(err)
}

// DropKey implements vault.KeyStore.
func (k *SessionKeys) DropKey(ctx context.Context, tenant string, sid uuid.UUID) error {
	return keysErr(k.q.DropSessionKey(ctx, db.DropSessionKeyParams{TenantID: tenant, SID: sid}))
}

// KeysByMaster implements vault.KeyStore.
func (k *SessionKeys) KeysByMaster(ctx context.Context) ([]vault.MasterUse, error) {
	rows, err := k.q.SessionKeysByMaster(ctx)
	var out []vault.MasterUse
	for _, r := range rows {
		if len(out) == 0 || out[len(out)-1].Master != r.Master {
			out = append(out, vault.MasterUse{Master: r.Master, Keys: r.Keys})
		}
		use := &out[len(out)-1]
		use.Samples = append(use.Samples, vault.StoredKey{
			Tenant: r.TenantID, SID: r.SID, Wrapped: vault.Wrapped{Master: r.Master, Key: r.Wrapped},
		})
	}
	return out, keysErr(err)
}

// KeysNotUnder implements vault.KeyStore.
func (k *SessionKeys) KeysNotUnder(ctx context.Context, master, tenant string, sid uuid.UUID, limit int) ([]vault.StoredKey, error) {
	rows, err := k.q.SessionKeysNotUnder(ctx, db.SessionKeysNotUnderParams{
		Master: master, AfterTenant: tenant, AfterSID: sid, MaxRows: int32(limit),
	})
	out := make([]vault.StoredKey, len(rows))
	for i, r := range rows {
		out[i] = vault.StoredKey{Tenant: r.TenantID, SID: r.SID, Wrapped: vault.Wrapped{Master: r.Master, Key: r.Wrapped}}
	}
	return out, keysErr(err)
}

// Rewrap implements vault.KeyStore.
func (k *SessionKeys) Rewrap(ctx context.Context, old vault.StoredKey, w vault.Wrapped) (bool, error) {
	n, err := k.q.RewrapSessionKey(ctx, db.RewrapSessionKeyParams{
		Master: w.Master, Wrapped: w.Key, TenantID: old.Tenant, SID: old.SID, OldMaster: old.Master, OldWrapped: old.Key,
	})
	return n == 1, keysErr(err)
}

// Vault opens what is encrypted; nil without keys.
func (s *Store) Vault() *vault.Vault { return s.cfg.Vault }

// NewestSealed are encrypted sessions of all tenants, those that began last.
func (s *Store) NewestSealed(ctx context.Context, limit int) ([]SessionID, error) {
	rows, err := s.everyone.NewestSealed(ctx, db.NewestSealedParams{MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("sessions", err)
	}
	out := make([]SessionID, len(rows))
	for i, r := range rows {
		out[i] = SessionID{Tenant: r.TenantID, SID: r.SID}
	}
	return out, nil
}

// CountSealed counts sessions that are encrypted, of all tenants, and those that
// are not.
func (s *Store) CountSealed(ctx context.Context) (sealed, plain int64, err error) {
	r, err := s.everyone.CountSealed(ctx)
	if err != nil {
		return 0, 0, readErr("sessions", err)
	}
	return r.Sealed, r.Plain, nil
}
