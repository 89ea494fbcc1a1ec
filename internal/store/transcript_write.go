package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// Append appends an item of this session, whose gates hold as in any append.
func (t *LaneTx) Append(ctx context.Context, it *Item) (Appended, error) {
	it.Tenant, it.SessionKey = t.tenant, t.key
	it, err := t.store.sealTo(ctx, t.Session, t.Exists, it)
	if err != nil {
		return Appended{}, err
	}
	outs, err := run(ctx, t.q, t.store.params([]*Item{it}, false))
	if err != nil {
		return Appended{}, fmt.Errorf("append: %w", err)
	}
	a, err := outs[0].result(it)
	if err != nil {
		return Appended{}, err
	}
	return a, t.again(ctx)
}

// again reads the session anew after something was written.
func (t *LaneTx) again(ctx context.Context) error {
	r, err := t.q.SessionWithState(ctx, db.SessionWithStateParams{TenantID: t.tenant, SessionKey: t.key})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nothing was appended
	}
	if err != nil {
		return readErr("session", err)
	}
	t.Session, t.Exists = sessionOf(r.Session), true
	t.State, err = events.DecodeState(r.State)
	return err
}

// Reparent puts messages that this transaction appended under other parents.
func (t *LaneTx) Reparent(ctx context.Context, seqs, parents, totals []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	err := t.q.Reparent(ctx, db.ReparentParams{
		TenantID: t.tenant, SID: t.Session.SID, Seqs: seqs, Parents: parents, Totals: totals,
	})
	if err != nil {
		return fmt.Errorf("parents: %w", err)
	}
	return nil
}

// Step commits an epoch step.
func (t *LaneTx) Step(ctx context.Context, step EpochStep) (Stepped, error) {
	out, err := t.store.commitStep(ctx, t.q, t.Session, step)
	if err != nil {
		return Stepped{}, err
	}
	return out, t.again(ctx)
}

// PutKeys adds keys to events; one that is there stays as it is.
func (t *LaneTx) PutKeys(ctx context.Context, keys []KeyRow) error {
	if len(keys) == 0 {
		return nil
	}
	p := db.PutKeysParams{TenantID: t.tenant, SID: t.Session.SID}
	sealer, err := t.sealer(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if sealer != nil {
			k.Key, k.Hash = sealKey(sealer, k.Key), sealer.SealHash(k.Hash)
		}
		p.Kinds = append(p.Kinds, int16(k.Kind))
		p.Keys = append(p.Keys, k.Value)
		p.Seqs = append(p.Seqs, k.Seq)
		p.Hashes = append(p.Hashes, k.Hash)
	}
	if err := t.q.PutKeys(ctx, p); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

// sealer is the session's key; nil where it is not encrypted.
func (t *LaneTx) sealer(ctx context.Context) (*vault.Sealer, error) {
	if !t.Session.Sealed {
		return nil, nil
	}
	return t.open(t.Session.SID).key(ctx)
}

// SaveLane stores a lane's row.
func (t *LaneTx) SaveLane(ctx context.Context, l LaneRow) error {
	position := append([]byte{}, l.Position...)
	sealer, err := t.sealer(ctx)
	if err != nil {
		return err
	}
	if sealer != nil {
		position = sealer.Seal(vault.Lane, l.detail(), position)
	}
	err = t.q.SaveLane(ctx, db.SaveLaneParams{
		TenantID: t.tenant, SID: t.Session.SID, Gateway: l.Gateway, HostSessionID: l.HostSession,
		Cursor: l.Cursor, Revision: l.Revision, Position: position,
	})
	if err != nil {
		return fmt.Errorf("lane: %w", err)
	}
	return nil
}
