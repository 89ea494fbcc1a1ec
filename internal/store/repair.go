package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/events"
	"github.com/engined/engined/internal/message"
	"github.com/engined/engined/internal/store/db"
)

// SessionsOfKey are the sessions that have a key, of every tenant.
func (s *Store) SessionsOfKey(ctx context.Context, key string) ([]SessionID, error) {
	rows, err := s.everyone.SessionsOfKey(ctx, db.SessionsOfKeyParams{SessionKey: key})
	if err != nil {
		return nil, readErr("sessions", err)
	}
	out := make([]SessionID, len(rows))
	for i, r := range rows {
		out[i] = SessionID{Tenant: r.TenantID, SID: r.SID, Key: r.SessionKey}
	}
	return out, nil
}

// Repair is a Snapshot that writes what is derived of a session's log, under the
// session's lock: what it read stays true until it commits.
type Repair struct {
	Snapshot
}

// InRepair runs fn under the session's lock and commits what it did.
func (s *Store) InRepair(ctx context.Context, id SessionID, fn func(*Repair) error) error {
	err := s.withinUnhurried(ctx, id.Tenant, func(q *db.Queries) error {
		if err := q.LockSession(ctx, db.LockSessionParams{TenantID: id.Tenant, SessionKey: id.Key}); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return fn(&Repair{Snapshot{store: s, q: q, id: id}})
	})
	return errUnavailable(err)
}

// DerivedEvent is what is kept of an event beside its bytes.
type DerivedEvent struct {
	Seq, Epoch, Offset int64
	ReaderVersion      int16
	Facts              message.Facts
}

// RewriteFacts replaces what is derived of events.
func (r *Repair) RewriteFacts(ctx context.Context, list []DerivedEvent) error {
	p := db.RewriteFactsParams{TenantID: r.id.Tenant, SID: r.id.SID}
	for i := range list {
		e := &list[i]
		p.Seqs = append(p.Seqs, e.Seq)
		p.Epochs = append(p.Epochs, e.Epoch)
		p.Versions = append(p.Versions, e.ReaderVersion)
		p.Roles = append(p.Roles, int16(e.Facts.Role))
		p.Tokens = append(p.Tokens, int32(e.Facts.Tokens))
		p.Flags = append(p.Flags, int32(e.Facts.Flags)|int32(e.Facts.Dialect)<<dialectShift)
		p.Links = append(p.Links, message.EncodeLinks(e.Facts))
		p.Totals = append(p.Totals, e.Offset)
	}
	if _, err := r.q.RewriteFacts(ctx, p); err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	return nil
}

// PutState replaces the state that holds from a step on.
func (r *Repair) PutState(ctx context.Context, st RecordedState) error {
	body, err := events.EncodeState(st.State)
	if err != nil {
		return err
	}
	err = r.q.ReplaceState(ctx, db.ReplaceStateParams{
		TenantID: r.id.Tenant, SID: r.id.SID, AsOf: st.AsOf, Epoch: st.Epoch, State: body,
	})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// DropState takes a state away that no step began.
func (r *Repair) DropState(ctx context.Context, asOf int64) error {
	if err := r.q.DropState(ctx, db.DropStateParams{TenantID: r.id.Tenant, SID: r.id.SID, AsOf: asOf}); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// RewriteSession replaces what the session's row repeats of the log: heads,
// epoch, leaf, offsets, factor and dialect.
func (r *Repair) RewriteSession(ctx context.Context, s Session) error {
	err := r.q.RewriteSession(ctx, db.RewriteSessionParams{
		TenantID: r.id.Tenant, SID: r.id.SID, Head: s.Head, HostHead: s.HostHead, Epoch: s.Epoch,
		LeafSeq: s.LeafSeq, LeafOffset: s.LeafOffset, BaseOffset: s.BaseOffset,
		FactorMilli: int32(s.FactorMilli), Dialect: int16(s.Dialect),
	})
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// AmissKey is a key that names no event, or one with another payload.
type AmissKey struct {
	KeyRow
	// EventHash is the payload of the event that it names; nil where there is none.
	EventHash []byte
	// Only is the one event with the key's own payload; 0 for none or several.
	Only int64
}

// AmissKeys are the session's keys that do not fit its events.
func (v *Snapshot) AmissKeys(ctx context.Context, limit int) ([]AmissKey, error) {
	rows, err := v.q.KeysAmiss(ctx, db.KeysAmissParams{TenantID: v.id.Tenant, SID: v.id.SID, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("keys", err)
	}
	out := make([]AmissKey, len(rows))
	open := v.store.openerIn(v.q, v.id.Tenant, v.id.SID)
	for i, r := range rows {
		if r.PayloadHash, err = open.hash(ctx, r.PayloadHash); err != nil {
			return nil, err
		}
		if r.EventHash, err = open.hash(ctx, r.EventHash); err != nil {
			return nil, err
		}
		out[i] = AmissKey{KeyRow: KeyRow{Key: Key{Kind: KeyKind(r.Kind), Value: r.Key}, Seq: r.Seq, Hash: r.PayloadHash}, Only: r.OnlySeq}
		if r.Found {
			out[i].EventHash = r.EventHash
		}
	}
	return out, nil
}

// KeylessTurns are committed turns that no key names, with their bodies.
func (v *Snapshot) KeylessTurns(ctx context.Context, limit int) ([]Logged, error) {
	rows, err := v.q.KeylessTurns(ctx, db.KeylessTurnsParams{TenantID: v.id.Tenant, SID: v.id.SID, MaxRows: int32(limit)})
	if err != nil {
		return nil, readErr("keys", err)
	}
	out := make([]Logged, len(rows))
	open := v.store.openerIn(v.q, v.id.Tenant, v.id.SID)
	for i, r := range rows {
		if r.Body, err = open.event(ctx, r.Seq, r.Body); err != nil {
			return nil, err
		}
		if r.PayloadHash, err = open.hash(ctx, r.PayloadHash); err != nil {
			return nil, err
		}
		out[i] = Logged{Event: events.Event{Seq: r.Seq, Type: events.TurnCommitted, Body: r.Body}, PayloadHash: r.PayloadHash}
	}
	return out, nil
}

// RewriteKey has a key name another event.
func (r *Repair) RewriteKey(ctx context.Context, k KeyRow) error {
	// Its own name is as it was read: in its stored form.
	hash, err := r.storedHash(ctx, k.Hash)
	if err != nil {
		return err
	}
	err = r.q.RewriteKey(ctx, db.RewriteKeyParams{
		TenantID: r.id.Tenant, SID: r.id.SID, Kind: int16(k.Kind), Key: k.Value, Seq: k.Seq, PayloadHash: hash,
	})
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	return nil
}

// PutKey adds a key; one that is there stays as it is.
func (r *Repair) PutKey(ctx context.Context, k KeyRow) error {
	hash, err := r.storedHash(ctx, k.Hash)
	if err != nil {
		return err
	}
	err = r.q.PutKeys(ctx, db.PutKeysParams{
		TenantID: r.id.Tenant, SID: r.id.SID, Kinds: []int16{int16(k.Kind)}, Keys: [][]byte{k.Value}, Seqs: []int64{k.Seq}, Hashes: [][]byte{hash},
	})
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	return nil
}

// storedHash is a payload's hash as the session's rows have it.
func (r *Repair) storedHash(ctx context.Context, h []byte) ([]byte, error) {
	k, err := r.store.openerIn(r.q, r.id.Tenant, r.id.SID).perhaps(ctx)
	if err != nil || k == nil {
		return h, err
	}
	return k.SealHash(h), nil
}

// Owed is what the session owes; ok is false when it owes nothing.
func (v *Snapshot) Owed(ctx context.Context) (d Debt, ok bool, err error) {
	r, err := v.q.DebtOf(ctx, db.DebtOfParams{TenantID: v.id.Tenant, SID: v.id.SID})
	if errors.Is(err, pgx.ErrNoRows) {
		return Debt{}, false, nil
	}
	if err != nil {
		return Debt{}, false, readErr("debt", err)
	}
	return Debt{Tenant: v.id.Tenant, SID: v.id.SID, Epoch: r.Epoch, Tokens: r.Tokens, Budget: r.Budget}, true, nil
}

// SetDebt writes what the session owes, or that it owes nothing.
func (r *Repair) SetDebt(ctx context.Context, d Debt, owes bool) error {
	if !owes {
		return r.q.PayDebt(ctx, db.PayDebtParams{TenantID: r.id.Tenant, SID: r.id.SID})
	}
	err := r.q.PutDebt(ctx, db.PutDebtParams{TenantID: r.id.Tenant, SID: r.id.SID, Epoch: d.Epoch, Tokens: d.Tokens, Budget: d.Budget})
	if err != nil {
		return fmt.Errorf("debt: %w", err)
	}
	return nil
}

// Owing is what a session owes by the append's own rule; ok is false where it
// is not over the threshold. model is the one that its newest turns named.
func (s *Store) Owing(cur Session, model string) (d Debt, ok bool) {
	budget := cmp.Or(cur.TokenBudget, s.cfg.DefaultBudget)
	cost := (cur.LeafOffset - cur.BaseOffset) * int64(cur.FactorMilli)
	d = Debt{Tenant: cur.Tenant, SID: cur.SID, Epoch: cur.Epoch, Tokens: cost / 1000, Budget: budget}
	return d, cur.LeafOffset > cur.HoldOffset && cost > budget*s.cfg.debtMilliOf(model)
}

// DropStrayDebts drops debts of sessions that do not exist.
func (s *Store) DropStrayDebts(ctx context.Context) (int64, error) {
	n, err := s.everyone.DropStrayDebts(ctx)
	if err != nil {
		return 0, fmt.Errorf("debts: %w", errUnavailable(err))
	}
	return n, nil
}

// CallDue makes all that is owed due at once, so that the next sweep of a worker
// publishes it: compactions, and summaries to be written anew.
func (s *Store) CallDue(ctx context.Context) (int64, error) {
	debts, err := s.everyone.CallDebts(ctx)
	if err != nil {
		return 0, fmt.Errorf("debts: %w", errUnavailable(err))
	}
	redos, err := s.everyone.CallRedos(ctx)
	if err != nil {
		return debts, fmt.Errorf("redo: %w", errUnavailable(err))
	}
	return debts + redos, nil
}
