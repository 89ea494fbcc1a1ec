package store

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/engined/engined/internal/store/db"
	"github.com/engined/engined/internal/vault"
)

// opener decrypts what is read of one session, and encrypts what is kept beside
// its log. It asks for the key when the first encrypted byte comes.
type opener struct {
	store  *Store
	q      *db.Queries
	tenant string
	sid    uuid.UUID
	// inTx: q is a transaction that may come to nothing.
	inTx bool
	// told: sealed says whether the session is encrypted.
	told, sealed bool
	sealer       *vault.Sealer
	// gone: the key was asked for and is not there.
	gone bool
}

func (s *Store) opener(tenant string, sid uuid.UUID) *opener {
	return &opener{store: s, q: s.of(tenant), tenant: tenant, sid: sid}
}

// openerIn is opener for a transaction.
func (s *Store) openerIn(q *db.Queries, tenant string, sid uuid.UUID) *opener {
	return &opener{store: s, q: q, tenant: tenant, sid: sid, inTx: true}
}

// openerOf is opener for a session whose row is at hand.
func (s *Store) openerOf(cur Session) *opener {
	o := s.opener(cur.Tenant, cur.SID)
	if cur.Sealed || cur.Head > 0 {
		o.told, o.sealed = true, cur.Sealed
	}
	return o
}

// isSealed reports whether the session is encrypted. It goes by the session's row:
// that there is a key says little, since one is made before the first event,
// which may be refused.
func (o *opener) isSealed(ctx context.Context) (bool, error) {
	if o.told {
		return o.sealed, nil
	}
	if sealed, ok := o.store.sealings.get(o.sid); ok {
		o.told, o.sealed = true, sealed
		return sealed, nil
	}
	r, err := o.q.SealedSession(ctx, db.SealedSessionParams{TenantID: o.tenant, SID: o.sid})
	if errors.Is(err, pgx.ErrNoRows) {
		o.told = true // it was erased meanwhile
		return false, nil
	}
	if err != nil {
		return false, readErr("session", err)
	}
	o.told, o.sealed = r.Settled, r.Sealed
	if r.Settled && !o.inTx {
		o.store.sealings.put(o.sid, r.Sealed)
	}
	return r.Sealed, nil
}

// sealings remember which sessions are encrypted, of those that have events: a
// session stays what its first event was. The zero value is empty.
type sealings struct {
	mu sync.Mutex
	of map[uuid.UUID]bool
}

func (s *sealings) get(sid uuid.UUID) (sealed, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sealed, ok = s.of[sid]
	return sealed, ok
}

func (s *sealings) put(sid uuid.UUID, sealed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || len(s.of) >= maxPins {
		s.of = make(map[uuid.UUID]bool) // all are found again
	}
	s.of[sid] = sealed
}

// key is the session's; an error where it can't be had.
func (o *opener) key(ctx context.Context) (*vault.Sealer, error) {
	switch {
	case o.sealer != nil:
		return o.sealer, nil
	case o.store.cfg.Vault == nil:
		return nil, vault.ErrClosed
	case o.gone:
		return nil, vault.ErrKeyGone
	}
	k, err := o.store.cfg.Vault.Of(ctx, o.tenant, o.sid)
	if err != nil {
		return nil, err
	}
	if k == nil {
		o.gone = true
		return nil, vault.ErrKeyGone
	}
	o.sealer = k
	return k, nil
}

// perhaps is the session's key, nil where it is not encrypted, or where this
// process has no keys at all.
func (o *opener) perhaps(ctx context.Context) (*vault.Sealer, error) {
	if o.store.cfg.Vault == nil {
		return nil, nil
	}
	if sealed, err := o.isSealed(ctx); err != nil || !sealed {
		return nil, err
	}
	return o.key(ctx)
}

// event decrypts an event's body. In an encrypted session one that is not is
// damaged, or was put there by somebody without the key.
func (o *opener) event(ctx context.Context, seq int64, body []byte) ([]byte, error) {
	if !vault.IsSealed(body) {
		if o.store.cfg.Vault == nil {
			return body, nil
		}
		sealed, err := o.isSealed(ctx)
		if err != nil || !sealed {
			return body, err
		}
		return nil, &vault.CorruptError{SID: o.sid, Kind: vault.Event, Seq: seq}
	}
	k, err := o.key(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := k.Open(vault.Event, nil, body)
	if c, ok := errors.AsType[*vault.CorruptError](err); ok {
		c.Seq = seq
	}
	return plain, err
}

// bytes decrypts what is no event.
func (o *opener) bytes(ctx context.Context, kind vault.Kind, detail, sealed []byte) ([]byte, error) {
	if !vault.IsSealed(sealed) {
		return sealed, nil
	}
	k, err := o.key(ctx)
	if err != nil {
		return nil, err
	}
	return k.Open(kind, detail, sealed)
}

// job is bytes for the texts of summarization jobs. A gateway may answer with
// anything: in a session that is not encrypted such a text is just that.
func (o *opener) job(ctx context.Context, detail []byte, text string) (string, error) {
	if !vault.IsSealedText(text) {
		return text, nil
	}
	if sealed, err := o.isSealed(ctx); err != nil || !sealed {
		return text, err
	}
	k, err := o.key(ctx)
	if err != nil {
		return "", err
	}
	return k.OpenText(vault.Job, detail, text)
}

// name is what a draft or a question is kept under: the hash of what it was made
// from would tell a guess from another.
func (o *opener) name(ctx context.Context, hash []byte) ([]byte, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return hash, err
	}
	return k.Tag(hash), nil
}

// seal encrypts where the session is encrypted.
func (o *opener) seal(ctx context.Context, kind vault.Kind, detail, plain []byte) ([]byte, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return plain, err
	}
	return k.Seal(kind, detail, plain), nil
}

// replacing encrypts what takes an event's place, if the event is encrypted.
func (o *opener) replacing(ctx context.Context, event, body []byte) ([]byte, error) {
	if !vault.IsSealed(event) {
		return body, nil
	}
	k, err := o.key(ctx)
	if err != nil {
		return nil, err
	}
	return k.Seal(vault.Event, nil, body), nil
}

// sealJob is seal for the texts of summarization jobs.
func (o *opener) sealJob(ctx context.Context, detail []byte, plain string) (text string, sealed bool, err error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return plain, false, err
	}
	return k.SealText(vault.Job, detail, plain), true, nil
}

// hash is the plain form of a payload's hash.
func (o *opener) hash(ctx context.Context, h []byte) ([]byte, error) {
	k, err := o.perhaps(ctx)
	if err != nil || k == nil {
		return h, err
	}
	return k.OpenHash(h), nil
}

// unreadable tells errors of one session's bytes or key from those that pass.
func unreadable(err error) bool {
	_, corrupt := errors.AsType[*vault.CorruptError](err)
	return corrupt || errors.Is(err, vault.ErrKeyGone)
}
